// The views, by the names that links have for them. Each is a module with a title and show(ctx): see main.js.
import * as gaps from './gaps.js';
import * as now from './now.js';
import * as object from './object.js';
import * as objects from './objects.js';
import * as timeline from './timeline.js';

export const views = { now, timeline, gaps, objects, object };

// listed are those of the navigation; an object is found otherwise.
export const listed = ['now', 'timeline', 'gaps', 'objects'];

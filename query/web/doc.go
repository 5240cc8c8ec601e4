// Package web is the page: what a recorder, or a directory at rest, has to tell, for a person with a browser.
//
// It is plain HTML, CSS and JavaScript modules in static/, embedded; nothing is built, and nothing is loaded from elsewhere. The page
// has no data of its own: it asks the questions of httpapi under v1/, relative to where it was loaded from, so that it also works behind
// a proxy that gives it a path.
//
// # Invariants
//
//   - What a publisher sent is text, never markup: nodes are made by js/dom.js alone, which knows textContent and attributes and no
//     HTML. The Content-Security-Policy allows no inline script or style, and requires trusted types, of which the page makes none: a
//     slip ends in an error, not in someone else's script.
//   - What cannot be seen is shown quoted, as in the tables of the command line (js/text.js has the rule of Go's strconv.Quote).
//   - The page decides nothing: each state and certainty shown is one that was answered for that moment.
//   - A number beyond 2^53 is kept as text, so that no offset, seq or event_id is shown rounded.
//   - Colour says how sure something is, and nothing else; a pattern says the same beside it.
//   - A question whose answer nobody waits for any more is cancelled; what is asked again and again rests twenty times as long as it took.
//   - What was answered is shown as so now only while kvjournal answers: that is asked beside the questions that rest.
//   - The state of a view is in the fragment of its link, which browsers do not send: keys stay out of logs. A token is kept in
//     sessionStorage, and sent with questions only.
//
// # Where things are
//
//	main.js            the frame: views, search, keys, theme
//	link.js            the fragment of a link, read and written
//	api.js             questions, line by line; the token
//	dom.js text.js     nodes; numbers, times and bytes for people
//	causes.js          the causes of a loss, and what to do about each
//	virtual.js         a list of any length, of which only what is seen has nodes; pages.js: its lines, of which only the near ones are held
//	chart.js           scales, ticks and SVG; marks.js: of marks that would lie on each other, one
//	now.js …           a view each
package web

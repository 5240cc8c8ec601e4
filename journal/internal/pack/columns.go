package pack

// The columns, in their order in a packed block. Part of the format.
const (
	colShapes = iota // definitions: see shape.append
	colTails         // definitions: length uvarint, bytes: the array's head byte, then all behind the events
	colForm          // a byte a message: 0 raw, else 1 + its tail's number
	colTime          // a message's time, varint, above that of the message before
	colCount         // a message's number of events, uvarint
	colShape         // a byte an event: its shape's number
	colID            // varint
	colStamp         // varint
	colText          // keys and texts: see appendKey, appendText
	colRawLen        // the length of a raw message, uvarint
	colRaw           // raw messages
	columns
)

const (
	// maxShapes and maxTails bound what a block defines; a message that needs more is kept raw.
	maxShapes = 128
	maxTails  = 64
	// minHex is the shortest run of hex digits that is kept apart.
	minHex = 16
)

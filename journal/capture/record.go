package capture

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// magic begins every capture; its last three digits are the version.
const (
	magic       = magicPrefix + "001"
	magicPrefix = "KVCAP"
)

// Kind says what a record is. The values are part of the format.
type Kind uint8

const (
	Message      Kind = 1 // a multipart message, as received
	Connected    Kind = 2 // a connection stands; what follows came over it
	Disconnected Kind = 3 // the connection broke; what follows is unproven until the next Connected
)

func (k Kind) String() string {
	switch k {
	case Message:
		return "message"
	case Connected:
		return "connected"
	case Disconnected:
		return "disconnected"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Record is one entry of a capture.
type Record struct {
	Kind     Kind
	Received int64    // the recorder's clock, Unix ns
	Frames   [][]byte // of a Message; nil for the other kinds
}

// MaxFrames is how many frames a message in a capture has at most.
const MaxFrames = math.MaxUint8

// Fit returns frames as a capture can hold them: where they are too many, the last one is all of the rest, in one piece.
func Fit(frames [][]byte) [][]byte {
	if len(frames) <= MaxFrames {
		return frames
	}
	return append(frames[:MaxFrames-1:MaxFrames-1], bytes.Join(frames[MaxFrames-1:], nil))
}

// CopyFrames copies frames into dst's memory where that is large enough.
func CopyFrames(dst, frames [][]byte) [][]byte {
	for len(dst) < len(frames) {
		dst = append(dst, nil)
	}
	dst = dst[:len(frames)]
	for i, f := range frames {
		dst[i] = append(dst[i][:0], f...)
	}
	return dst
}

var (
	// ErrNotCapture: the input does not begin with the magic of a capture.
	ErrNotCapture = errors.New("not a kvcap capture")
	// ErrUnknownVersion: a capture, but of a version that this program does not know. Errors that
	// are ErrUnknownVersion are ErrNotCapture too.
	ErrUnknownVersion = fmt.Errorf("%w of a known version", ErrNotCapture)
	// ErrUnwritable: the format cannot hold the record (more than 255 frames, a frame of
	// 4 GiB or more, an unknown kind, frames on a record that is no message).
	ErrUnwritable = errors.New("record does not fit the kvcap format")
)

// CorruptError says where a capture stops making sense.
type CorruptError struct {
	// Offset is the byte in the decompressed stream where the trouble is; of a truncated capture, its length.
	Offset int64
	// Record is the byte where the record in trouble begins: everything before it was read whole.
	Record int64
	// What is wrong, for people.
	What string
	// Err is the cause: io.ErrUnexpectedEOF for a capture that is cut short, the decompressor's
	// error for damaged zstd data, else nil.
	Err error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt capture at byte %d (in the record at byte %d): %s", e.Offset, e.Record, e.What)
}

func (e *CorruptError) Unwrap() error { return e.Err }

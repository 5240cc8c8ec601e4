package capture

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

const writeBufferBytes = 64 << 10

// Writer writes a capture record by record. It is not safe for concurrent use.
//
// The bytes of a record are always copied before they are handed on: a vfs.File may modify
// what it is given to write.
type Writer struct {
	w   io.Writer
	buf []byte // capacity writeBufferBytes; never grown
	err error  // the first error of w; sticky, because what follows a hole is no capture
}

// NewWriter begins a capture on w. Nothing reaches w before the buffer is full or Flush.
func NewWriter(w io.Writer) (*Writer, error) {
	return &Writer{w: w, buf: append(make([]byte, 0, writeBufferBytes), magic...)}, nil
}

// Write appends rec. Nothing of rec is kept.
//
// Errors: ErrUnwritable, without a byte written and with the Writer still good; or the first error of
// the underlying writer, which is final.
func (w *Writer) Write(rec Record) error {
	if err := fits(&rec); err != nil {
		return err
	}
	var head [10]byte
	head[0] = byte(rec.Kind)
	binary.BigEndian.PutUint64(head[1:9], uint64(rec.Received))
	if rec.Kind != Message {
		w.add(head[:9])
		return w.err
	}
	head[9] = byte(len(rec.Frames))
	w.add(head[:])
	for _, f := range rec.Frames {
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(f)))
		w.add(length[:])
		w.add(f)
	}
	return w.err
}

// Flush hands everything written so far to the underlying writer.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		n, err := w.w.Write(w.buf)
		if err == nil && n < len(w.buf) {
			err = io.ErrShortWrite
		}
		w.buf, w.err = w.buf[:0], err
	}
	return w.err
}

func (w *Writer) add(p []byte) {
	for len(p) > 0 && w.err == nil {
		n := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		if len(w.buf) == cap(w.buf) {
			w.Flush() // keeps its error in w.err
		}
	}
}

func fits(rec *Record) error {
	switch rec.Kind {
	case Message:
	case Connected, Disconnected:
		if len(rec.Frames) > 0 {
			return fmt.Errorf("%w: %d frames on a record of kind %s", ErrUnwritable, len(rec.Frames), rec.Kind)
		}
	default:
		return fmt.Errorf("%w: unknown kind %d", ErrUnwritable, uint8(rec.Kind))
	}
	if len(rec.Frames) > MaxFrames {
		return fmt.Errorf("%w: %d frames, at most %d", ErrUnwritable, len(rec.Frames), MaxFrames)
	}
	for i, f := range rec.Frames {
		if uint64(len(f)) > math.MaxUint32 {
			return fmt.Errorf("%w: frame %d has %d bytes, at most %d", ErrUnwritable, i+1, len(f), uint32(math.MaxUint32))
		}
	}
	return nil
}

package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits bound what a Reader takes from its input. Zero values mean the defaults.
type Limits struct {
	// FrameBytes is the largest frame accepted, in bytes. Default 256 MiB, four times the largest
	// message a recorder accepts by default.
	FrameBytes int64
	// MessageBytes is the largest sum of the frames of one message. Default: twice FrameBytes.
	MessageBytes int64
}

func (l Limits) withDefaults() Limits {
	if l.FrameBytes <= 0 {
		l.FrameBytes = 256 << 20
	}
	if l.MessageBytes <= 0 {
		l.MessageBytes = 2 * l.FrameBytes
	}
	return l
}

const (
	readBufferBytes = 64 << 10
	// firstChunk is what a claimed length is believed without proof; from there on a frame gets at
	// most as much again as has arrived of it.
	firstChunk = 64 << 10
	// keepBytes is the message buffer kept between records: one giant message must not
	// hold its memory for the rest of the file.
	keepBytes = 4 << 20
)

// Reader reads a capture record by record. It is not safe for concurrent use.
type Reader struct {
	br      *bufio.Reader
	limits  Limits
	off     int64 // bytes consumed of the decompressed stream
	start   int64 // where the current record begins
	word    [8]byte
	buf     []byte
	lengths []int
	frames  [][]byte
	err     error // what ended the reading; sticky
}

// NewReader checks the magic and returns a Reader with the default Limits. r is read in large
// pieces, beyond the records returned.
//
// Errors: ErrNotCapture, ErrUnknownVersion, or r's own.
func NewReader(r io.Reader) (*Reader, error) { return NewReaderLimits(r, Limits{}) }

// NewReaderLimits is NewReader with other limits.
func NewReaderLimits(r io.Reader, limits Limits) (*Reader, error) {
	rd := &Reader{br: bufio.NewReaderSize(r, readBufferBytes), limits: limits.withDefaults(), buf: make([]byte, 0, 4<<10)}
	var head [len(magic)]byte
	n, err := io.ReadFull(rd.br, head[:])
	rd.off = int64(n)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return nil, fmt.Errorf("%w: only %d bytes", ErrNotCapture, n)
	case err != nil:
		return nil, rd.fail("in the magic", err)
	case string(head[:]) == magic:
		return rd, nil
	case string(head[:len(magicPrefix)]) == magicPrefix:
		return nil, fmt.Errorf("%w: begins with %q, known is %q", ErrUnknownVersion, head[:], magic)
	}
	return nil, fmt.Errorf("%w: begins with %q", ErrNotCapture, head[:])
}

// Offset is the byte in the decompressed stream behind the last record that was returned.
func (r *Reader) Offset() int64 {
	if r.err != nil {
		return r.start
	}
	return r.off
}

// Next reads the next record into rec. Its Frames are valid until the next call.
//
// Errors: io.EOF behind the last record, a *CorruptError, or an error of the underlying reader.
// They are final: every later call returns the same.
func (r *Reader) Next(rec *Record) error {
	if r.err == nil {
		r.start = r.off
		r.err = r.next(rec)
	}
	return r.err
}

func (r *Reader) next(rec *Record) error {
	kind, err := r.br.ReadByte()
	if err == io.EOF {
		return io.EOF
	} else if err != nil {
		return r.fail("in the record kind", err)
	}
	switch Kind(kind) {
	case Message, Connected, Disconnected:
	default:
		return r.corrupt(fmt.Sprintf("unknown record kind %d", kind))
	}
	r.off++
	if err := r.fill(r.word[:8]); err != nil {
		return r.fail("in the receive time", err)
	}
	received := int64(binary.BigEndian.Uint64(r.word[:8]))
	if Kind(kind) != Message {
		*rec = Record{Kind: Kind(kind), Received: received}
		return nil
	}
	if err := r.message(); err != nil {
		return err
	}
	*rec = Record{Kind: Message, Received: received, Frames: r.frames}
	return nil
}

// message reads the body of a message into r.frames.
func (r *Reader) message() error {
	if cap(r.buf) > keepBytes {
		r.buf = make([]byte, 0, firstChunk)
	}
	r.buf, r.lengths = r.buf[:0], r.lengths[:0]
	if err := r.fill(r.word[:1]); err != nil {
		return r.fail("in the frame count", err)
	}
	count := int(r.word[0])
	for i := range count {
		if err := r.fill(r.word[:4]); err != nil {
			return r.fail(fmt.Sprintf("in the length of frame %d of %d", i+1, count), err)
		}
		length := int64(binary.BigEndian.Uint32(r.word[:4]))
		var over string
		if length > r.limits.FrameBytes {
			over = fmt.Sprintf("frame %d of %d claims %d bytes, the limit is %d", i+1, count, length, r.limits.FrameBytes)
		} else if sum := int64(len(r.buf)) + length; sum > r.limits.MessageBytes {
			over = fmt.Sprintf("frame %d of %d makes it a message of %d bytes, the limit is %d", i+1, count, sum, r.limits.MessageBytes)
		}
		if over != "" {
			r.off -= 4
			return r.corrupt(over)
		}
		if got, err := r.frame(length); err != nil {
			return r.fail(fmt.Sprintf("in frame %d of %d, behind %d of its %d bytes", i+1, count, got, length), err)
		}
		r.lengths = append(r.lengths, int(length))
	}
	r.frames = r.frames[:0]
	rest := r.buf
	for _, n := range r.lengths {
		r.frames = append(r.frames, rest[:n:n])
		rest = rest[n:]
	}
	return nil
}

// frame appends the next length bytes to r.buf and says how many came.
func (r *Reader) frame(length int64) (got int64, err error) {
	for got < length {
		chunk := min(length-got, max(firstChunk, got))
		r.buf = slices.Grow(r.buf, int(chunk))
		to := len(r.buf)
		before := r.off
		err := r.fill(r.buf[to : to+int(chunk)])
		got += r.off - before
		if err != nil {
			return got, err
		}
		r.buf = r.buf[:to+int(chunk)]
	}
	return got, nil
}

// fill reads all of p; a stream that ends before is io.ErrUnexpectedEOF.
func (r *Reader) fill(p []byte) error {
	n, err := io.ReadFull(r.br, p)
	r.off += int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (r *Reader) corrupt(what string) error {
	return &CorruptError{Offset: r.off, Record: r.start, What: what}
}

// fail turns an error of the underlying reader into what Next returns.
func (r *Reader) fail(where string, err error) error {
	var damage *compressionError
	switch {
	case errors.As(err, &damage):
		return &CorruptError{Offset: r.off, Record: r.start, What: where + ": " + damage.Error(), Err: damage.err}
	case err == io.ErrUnexpectedEOF:
		return &CorruptError{Offset: r.off, Record: r.start, What: "cut short " + where, Err: err}
	}
	return fmt.Errorf("reading capture at byte %d, %s: %w", r.off, where, err)
}

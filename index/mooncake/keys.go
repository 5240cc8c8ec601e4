package mooncake

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"slices"
)

// Listing tells of a listing that came whole.
type Listing struct {
	Timing
	Keys  int64 // lines
	Bytes int64 // with the line ends
}

// listBuffer is what is read of a listing at once, in bytes.
const listBuffer = 64 << 10

// Keys asks for the keys of the tenant `default` and calls f with each, in no order. They are any bytes but a newline: a
// key with one comes as several. The slice is good until f returns.
//
// Only when Keys returns without an error has the listing come whole; what f collected before an error is worth
// nothing. An error of f ends it and is returned as it is. f must not call the Client, and should be quick: the master waits for it,
// and the time counts as the call's.
func (c *Client) Keys(ctx context.Context, f func(key []byte) error) (Listing, error) {
	var l Listing
	t, err := c.call(ctx, KindKeys, "", 0, func(r *reply) error {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "text/plain" {
			return broken("the content type is %q, a listing's is text/plain", r.Header.Get("Content-Type"))
		}
		if r.ContentLength < 0 && !slices.Contains(r.TransferEncoding, "chunked") {
			return broken("there is no Content-Length: a listing that was cut could not be told from a whole one")
		}
		var err error
		l.Keys, err = readLines(r, c.options.MaxKey, f)
		l.Bytes = r.n
		return err
	})
	if err != nil {
		return Listing{}, err
	}
	l.Timing = t
	return l, nil
}

// readLines calls f with each line of r, without its end, and returns their number. The last one must have an end too.
func readLines(r io.Reader, maxLine int, f func([]byte) error) (lines int64, err error) {
	in := bufio.NewReaderSize(r, min(listBuffer, max(maxLine, 16)))
	var long []byte // the beginning of a line that is longer than the buffer
	for {
		part, err := in.ReadSlice('\n')
		if len(long)+len(part) > maxLine+1 {
			return lines, broken("a key has more than %d bytes", maxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
			continue
		case err == io.EOF && len(long)+len(part) == 0:
			return lines, nil
		case err == io.EOF:
			return lines, io.ErrUnexpectedEOF // the last line has no end
		case err != nil:
			return lines, err
		}
		line := part[:len(part)-1]
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if err := f(line); err != nil {
			return lines, callerError{err}
		}
		lines++
		long = long[:0]
	}
}

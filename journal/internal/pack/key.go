package pack

import (
	"encoding/binary"

	"github.com/kvjournal/kvjournal/journal/digits"
	"github.com/kvjournal/kvjournal/journal/varint"
)

// A key is kept as parts: text (length uvarint, bytes) and a run of lower-case hex digits (half their number, uvarint; the digits are in
// hex, two a byte), and so on until a run of none.

func appendKey(text, hex, key []byte) (newText, newHex []byte) {
	begin := 0
	for i := 0; i < len(key); {
		if !digits.Is(key[i]) {
			i++
			continue
		}
		mark, from := len(hex), i
		hex = digits.AppendPacked(hex, key[i:])
		if i += 2 * (len(hex) - mark); i-from < minHex {
			hex = hex[:mark]
			i = max(i, from+1)
			continue
		}
		text = appendPart(text, key[begin:from])
		text = binary.AppendUvarint(text, uint64(i-from)/2)
		begin = i
	}
	text = appendPart(text, key[begin:])
	return append(text, 0), hex
}

func appendPart(dst, s []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// readKey appends the next key to dst.
func readKey(dst []byte, text, hex *varint.Cursor) []byte {
	for {
		dst = append(dst, text.Bytes(text.Uvarint())...)
		n := text.Uvarint()
		if n == 0 || text.Bad {
			return dst
		}
		dst = digits.AppendText(dst, hex.Bytes(n))
		if hex.Bad {
			return dst
		}
	}
}

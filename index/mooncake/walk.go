package mooncake

import (
	"bytes"
	"encoding/json"
)

// The functions here walk over JSON that encoding/json has found valid: they look for where values end, and nothing else.

// eachField calls f with each field of an object, in order.
func eachField(b []byte, f func(name string, value []byte) error) error {
	for i := afterSpace(b, 1); b[i] != '}'; {
		end := valueEnd(b, i)
		name := unquote(b[i:end])
		i = afterSpace(b, end)
		i = afterSpace(b, i+1) // the colon
		end = valueEnd(b, i)
		if err := f(name, b[i:end]); err != nil {
			return err
		}
		if i = afterSpace(b, end); b[i] == ',' {
			i = afterSpace(b, i+1)
		}
	}
	return nil
}

// valueEnd is the index behind the value that begins at i.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		for i++; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		return i + 1
	case '{', '[':
		for depth := 0; ; i++ {
			switch b[i] {
			case '"':
				i = valueEnd(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) && bytes.IndexByte([]byte(" \t\r\n,:]}"), b[i]) < 0 {
		i++
	}
	return i
}

func afterSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// unquote gives the text of a string, and "" of another value.
func unquote(value []byte) string {
	if value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	var s string
	_ = json.Unmarshal(value, &s)
	return s
}

// filled says whether a value is an array or an object, and not empty.
func filled(value []byte) bool {
	if value[0] != '[' && value[0] != '{' {
		return false
	}
	next := value[afterSpace(value, 1)]
	return next != ']' && next != '}'
}

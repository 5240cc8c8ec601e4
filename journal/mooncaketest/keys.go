package mooncaketest

// groupPrefix and groupKeyBytes: SGLang's connector groups objects as "sglang-hicache:" and the first 40 bytes of the
// key (seen in conformance/captures).
const (
	groupPrefix   = "sglang-hicache:"
	groupKeyBytes = 40
)

// name holds an object's key and its group in one string, so that a new object costs one allocation:
// groupPrefix, then the key.
type name string

func (n name) key() string   { return string(n[len(groupPrefix):]) }
func (n name) group() string { return string(n[:len(groupPrefix)+groupKeyBytes]) }

// newName makes up a key as the connectors do: mostly SGLang's "<64 hex>_0_k" (68 bytes), else the bare hash, or vLLM's
// longer form. All end in or begin with 256 random bits, so that no two are alike.
func (r random) newName(scratch []byte) (name, []byte) {
	b := append(scratch[:0], groupPrefix...)
	switch form := r.below(20); {
	case form < 14:
		b = append(r.appendHex(b), "_0_k"...)
	case form < 17:
		b = r.appendHex(b)
	default:
		b = append(b, "kv-prod@deepseek-v3@tp_rank:"...)
		b = append(b, '0'+byte(r.below(8)))
		b = append(b, "@pcp0@dcp0@pp_rank:0@group:0@"...)
		b = r.appendHex(b)
	}
	return name(b), b
}

// oddities are what makes a key hard to ask an admin API for (spec/master-admin.md, "Odd keys").
var oddities = [...]string{",", "\n", "%", "%zz", "+", " ", "&keys=", "=", "#", "\"\\", "\x00", "é€\U0001F600", "\xff", "\xed\xa0\x80"}

// newOddName makes up a key of 64 random hex digits with an oddity among them.
func (r random) newOddName(scratch []byte) (name, []byte) {
	b := r.appendHex(append(scratch[:0], groupPrefix...))
	half := string(b[len(b)-32:])
	b = append(append(b[:len(b)-32], oddities[r.below(len(oddities))]...), half...)
	return name(b), b
}

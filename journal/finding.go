package journal

// Finding is one thing that a check found.
type Finding struct {
	// File is the file that it is in, relative to the data directory; empty where it is no single one.
	File string `json:"file,omitempty"`
	// Offset is that of the first record it touches; 0: none. Last is that of the last, where there are several.
	Offset uint64 `json:"offset,omitempty"`
	Last   uint64 `json:"last_offset,omitempty"`
	// Key is that of a row, in hex.
	Key string `json:"key,omitempty"`
	// What is wrong.
	What string `json:"what"`
	// Severity is Damage or Note.
	Severity Severity `json:"severity"`
	// Next says what to do.
	Next string `json:"next"`
}

// Severity of a finding.
type Severity string

const (
	// Damage: something that was recorded, or is computed from it, cannot be read or is wrong.
	Damage Severity = "damage"
	// Note: it is not as this program leaves it, and nothing is lost by it.
	Note Severity = "note"
)

// What to do about a finding.
const (
	NextRepair  = "kvjournal repair --to NEW saves all that is readable"
	NextRebuild = "kvjournal rebuild computes the index anew; the next question or recorder does so by itself"
	NextNothing = "nothing: the next recorder or import puts it right"
)

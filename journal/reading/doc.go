// Package reading has what the records about the master's admin API say: polls of its counters that change a claim, and readings
// of its objects (R9). They are journaled like everything else that can change an answer, so that the index is computed from
// the journal alone, and a rebuild gives the same answers with the master gone.
//
// A reading is three kinds of record:
//
//	reconciliation_begun   JSON Begun: h, where the reading begins
//	reconciliation_part    corrections and exceptions, as many parts as needed:
//
//	    +---------+=======+=======+===================+
//	    | begun h | backend | tenant | entries to the end |
//	    | uvarint |  text   |  text  |                    |
//	    +---------+=======+=======+===================+
//	    entry: what u8 (1 present, 2 absent, 3 nothing is said) · key text · medium text (not where nothing is said)
//	    text: length uvarint, bytes
//
//	reconciliation_ended   JSON Ended: what it covers, and that it holds
//
// Parts and the end of a reading are committed together: a part without its end does not exist. A reading that was begun and
// has no end was given up, and changes nothing.
package reading

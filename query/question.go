package query

import (
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads one line of `lookup --stdin`. Each field may be given as text or in base64.
func (q *Question) UnmarshalJSON(b []byte) error {
	var w nameJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if err := q.Name.read(&w); err != nil {
		return err
	}
	if len(q.Key) == 0 {
		return fmt.Errorf("no object_key or object_key_base64")
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON reads.
func (q *Question) MarshalJSON() ([]byte, error) {
	return json.Marshal(nameJSON{Source: q.Source, BackendBase64: q.Backend.base64(), TenantBase64: q.Tenant.base64(), KeyBase64: q.Key.base64()})
}

// Package client asks a kvjournal service over HTTP, for Go programs: a running recorder or `kvjournal serve` at an address, or, on its
// machine, the recorder's socket.
//
//	c, err := client.New("http://127.0.0.1:8900", client.Options{})
//	answers, err := c.Lookup(ctx, []query.Question{{Name: query.Name{Key: query.Bytes("k")}}}, "")
//	for gap, err := range c.Gaps(ctx, client.Params{"source": "default"}) { … }
//	err = c.Follow(ctx, client.Params{"type": "event"}, last, func(id client.EventID, line *query.LogLine) error { … })
//
// Answers are the types of package query. An answer that breaks off is an error, never a short answer. A question that is wrong is a
// *query.UsageError, what else the service says a *httpapi.ProblemError, and a service that went away a *httpapi.GoneError: ask again.
package client

package main

import (
	"fmt"
	"strings"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/subscribe"
	"github.com/kvjournal/kvjournal/query/service"
)

// configs are the sources that the flags name.
func (f *recordFlags) configs() ([]service.SourceConfig, error) {
	var out []service.SourceConfig
	if len(f.endpoints) > 0 {
		out = append(out, service.SourceConfig{Name: "default", Endpoints: f.endpoints, Masters: f.masters})
	} else if len(f.masters) > 0 {
		return nil, fmt.Errorf("--master goes with --endpoint")
	}
	for _, text := range f.sources {
		c, err := parseSource(text)
		if err != nil {
			return nil, fmt.Errorf("--source %q: %w; write name=NAME,endpoint=tcp://HOST:PORT[,master=URL]", text, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("nothing to record: give --endpoint tcp://HOST:PORT, or --source")
	}
	names := map[string]bool{}
	for _, c := range out {
		if names[c.Name] {
			return nil, fmt.Errorf("two sources are named %q", c.Name)
		}
		names[c.Name] = true
		if err := checkSource(&c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func checkSource(c *service.SourceConfig) error {
	if len(c.Endpoints) == 0 {
		return fmt.Errorf("source %q has no endpoint", c.Name)
	}
	seen := map[string]bool{}
	for _, e := range c.Endpoints {
		if err := subscribe.CheckEndpoint(e); err != nil {
			return fmt.Errorf("source %q: %w; write tcp://HOST:PORT", c.Name, err)
		}
		if seen[e] {
			return fmt.Errorf("source %q has the endpoint %s twice", c.Name, e)
		}
		seen[e] = true
	}
	for _, m := range c.Masters {
		if err := mooncake.CheckURL(m); err != nil {
			return fmt.Errorf("source %q: %w", c.Name, err)
		}
	}
	if n := len(c.Masters); n > 0 && n != len(c.Endpoints) {
		return fmt.Errorf("source %q has %d endpoints and %d masters; give one master for each endpoint, in the same order", c.Name, len(c.Endpoints), n)
	}
	return nil
}

func parseSource(text string) (service.SourceConfig, error) {
	var c service.SourceConfig
	for _, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || value == "" {
			return c, fmt.Errorf("%q is no key=value", part)
		}
		switch key {
		case "name":
			c.Name = value
		case "endpoint":
			c.Endpoints = append(c.Endpoints, value)
		case "master":
			c.Masters = append(c.Masters, value)
		default:
			return c, fmt.Errorf("unknown key %q", key)
		}
	}
	if c.Name == "" {
		return c, fmt.Errorf("it has no name")
	}
	return c, nil
}

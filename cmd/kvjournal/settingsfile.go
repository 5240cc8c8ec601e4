package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"

	"github.com/kvjournal/kvjournal/query/near"
)

// maxConfig bounds a file of settings.
const maxConfig = 1 << 20

// fileLayer reads a file of settings; path "" is no file. What is wrong in it is a usage error, that it cannot be read is not.
func fileLayer(path string, known, lists []string) (layer, error) {
	l := layer{nil, func(string) string { return "file " + path }}
	if path == "" {
		return l, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return l, fmt.Errorf("--config: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return l, fmt.Errorf("--config: %w", err)
	}
	if len(b) > maxConfig {
		return l, usageError(fmt.Errorf("file %s: larger than 1 MiB, so it is no file of settings", path))
	}
	if l.values, err = parseSettings(string(b), known, lists); err != nil {
		return l, usageError(fmt.Errorf("file %s: %w", path, err))
	}
	return l, nil
}

// parseSettings reads the text of a file: TOML, one setting a line, without tables. The names are the flags'. A setting that takes
// several values may have a list; an empty list is none.
func parseSettings(text string, known, lists []string) (map[string][]string, error) {
	var raw map[string]any
	meta, err := toml.Decode(text, &raw)
	if err != nil {
		var at toml.ParseError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("line %d: %s; write name = \"value\"", at.Position.Line, at.Message)
		}
		return nil, err
	}
	out := map[string][]string{}
	for _, key := range meta.Keys() {
		name := key[0]
		switch raw[name].(type) {
		case map[string]any, []map[string]any:
			return nil, fmt.Errorf("there are no tables, as %s is one: a setting is a line, name = value", name)
		}
		if !slices.Contains(known, name) {
			nearest := ""
			if like, is := near.Nearest(name, known); is {
				nearest = fmt.Sprintf("the nearest is %q, ", like)
			}
			return nil, fmt.Errorf("there is no setting %q; %s`kvjournal record --print-config` shows all", name, nearest)
		}
		values, err := settingValues(raw[name], slices.Contains(lists, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(values) > 0 {
			out[name] = values
		}
	}
	return out, nil
}

// settingValues makes text of a value, as it would stand behind the flag.
func settingValues(v any, list bool) ([]string, error) {
	switch v := v.(type) {
	case string:
		return []string{v}, nil
	case int64:
		return []string{strconv.FormatInt(v, 10)}, nil
	case bool:
		return []string{strconv.FormatBool(v)}, nil
	case []any:
		if !list {
			return nil, errors.New("it takes one value, not a list")
		}
		var out []string
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, errors.New("a list holds texts: [\"a\", \"b\"]")
			}
			out = append(out, s)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%v is no text, whole number or boolean; write it in quotes", v)
}

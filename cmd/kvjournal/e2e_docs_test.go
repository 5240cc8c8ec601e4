package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query"
)

func documents(t *testing.T) (texts map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("docs", "*.md"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("documents %q: %v", paths, err)
	}
	texts = map[string]string{}
	for _, path := range paths {
		texts[filepath.Base(path)] = readText(t, path)
	}
	return texts
}

// Every command of the documents runs, and prints what they show, as with the README.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for name, text := range documents(t) {
		if name == "README.md" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(text, "curl -s") {
				if _, err := exec.LookPath("curl"); err != nil {
					t.Skip("its examples need curl")
				}
			}
			if shown, _ := runDocument(t, name, text); shown < 3 {
				t.Errorf("%d commands show what they print", shown)
			}
		})
	}
}

// What the documents refer to is there: other documents and their headings, files of the source, targets of make, and they are all listed.
func TestDocumentsRefer(t *testing.T) {
	t.Parallel()
	texts := documents(t)
	for name, text := range texts {
		if name != "README.md" && !strings.Contains(texts["README.md"], "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
		for _, m := range regexp.MustCompile(`\]\(([^):]*)\)`).FindAllStringSubmatch(text, -1) {
			path, heading, _ := strings.Cut(m[1], "#")
			other, ok := texts[path]
			if !ok {
				t.Errorf("%s links to %s, and there is none", name, path)
			} else if heading != "" && !slices.Contains(headings(other), heading) {
				t.Errorf("%s links to %s: its headings are %q", name, m[1], headings(other))
			}
		}
		for _, m := range regexp.MustCompile("[`  (]((?:journal|index|query|cmd|testdata)/[A-Za-z0-9_/.]*[A-Za-z0-9])").FindAllStringSubmatch(text, -1) {
			path := regexp.MustCompile(`\.[A-Z][A-Za-z]*$`).ReplaceAllString(m[1], "") // a name in a package
			if _, err := os.Stat(filepath.Join("..", "..", path)); err != nil {
				t.Errorf("%s names %s: %v", name, m[1], err)
			}
		}
	}
}

// headings are the anchors of a document.
func headings(text string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		words := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(words, " ", "-"))
	}
	return anchors
}

// The documents tell every cause of a loss, every doubt, every rule, and every question there is.
func TestDocumentsAreWhole(t *testing.T) {
	t.Parallel()
	texts := documents(t)
	for _, c := range gapCauses {
		if !strings.Contains(texts["operating.md"], "\n| `"+c.name+"` |") {
			t.Errorf("operating.md does not tell the cause %s", c.name)
		}
	}
	for _, d := range []string{query.DoubtCleared, query.DoubtNoEvidence, query.DoubtForgotten, query.DoubtFullBatch, query.DoubtBehindLast, query.DoubtBeforeFirst,
		query.DoubtClock, query.DoubtWindow, query.DoubtSilent, query.DoubtNow, query.DoubtWithinBatch} {
		if !strings.Contains(texts["confirmed.md"], "\n| `"+d+"` |") {
			t.Errorf("confirmed.md does not tell the doubt %s", d)
		}
	}
	for _, rule := range []string{"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11"} {
		if !strings.Contains(texts["confirmed.md"], "\n| "+rule+" | ") {
			t.Errorf("confirmed.md does not tell %s", rule)
		}
	}
	questions := readText(t, filepath.Join("..", "..", "query", "httpapi", "questions.go"))
	names := regexp.MustCompile(`(?m)^\t"([a-z]+)": `).FindAllStringSubmatch(questions, -1)
	if len(names) < 10 {
		t.Fatalf("found %d questions", len(names))
	}
	for _, m := range names {
		if !strings.Contains(texts["api.md"], "/v1/"+m[1]+"`") {
			t.Errorf("api.md does not tell /v1/%s", m[1])
		}
	}
}

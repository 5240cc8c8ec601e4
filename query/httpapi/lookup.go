package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/kvjournal/kvjournal/query"
)

// lookupOne answers GET /v1/lookup?object_key=K&source=S&backend_id=B&tenant_id=T&at=WHEN.
func lookupOne(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
	p, err := paramsOf(out.w, r)
	if err != nil {
		return err
	}
	name, at := p.name(), p.when("at", e.Clock())
	if err := p.err(); err != nil {
		return err
	}
	answers, err := e.Lookup(ctx, []query.Question{{Name: name}}, at)
	if err != nil {
		return err
	}
	out.kind = oneJSON
	return out.write(answers[0])
}

// lookup answers POST /v1/lookup?at=WHEN: questions one a line, or an array of them.
func lookup(ctx context.Context, e *query.Engine, r *http.Request, out *lines) error {
	p, err := pathParams(r)
	if err != nil {
		return err
	}
	w := p.when("at", e.Clock())
	if err := cmp.Or(p.err(), encodedPlainly(r), noForm(r)); err != nil {
		return err
	}
	body := bufio.NewReaderSize(newPatientBody(out.w, r), 4<<10)
	first, err := firstByte(body)
	if err != nil {
		return err
	}
	if first == '[' {
		return lookupArray(ctx, e, body, w, out)
	}
	asker := e.Asker()
	return eachChunk(body, lookupChunk, query.ParseOnlyQuestion, func(questions []query.Question) error {
		answers, err := asker.Lookup(ctx, questions, w)
		if err != nil {
			return err
		}
		for _, a := range answers {
			if err := out.write(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// firstByte is the first that is no white space, 0 where there is none; it and what follows is still to be read.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return 0, err
		case b != ' ' && b != '\t' && b != '\r' && b != '\n':
			return b, in.UnreadByte()
		}
	}
}

// arrayMost is how many questions an array may hold: what is asked and answered is held at once. Lines may be any number.
const arrayMost = 1 << 16

// lookupArray answers an array with an array: all of it, or a Problem.
func lookupArray(ctx context.Context, e *query.Engine, body io.Reader, w query.When, out *lines) error {
	b, err := io.ReadAll(io.LimitReader(body, maxLine+1))
	if err != nil {
		return err
	}
	if len(b) > maxLine {
		return &query.UsageError{Message: fmt.Sprintf("an array of more than %d MiB; send the questions one a line", maxLine>>20)}
	}
	questions, err := query.ParseOnlyQuestions(b)
	if err != nil {
		err = fieldsTold(err)
		return &query.UsageError{Message: fmt.Sprintf("%v; the array is of objects like {\"tenant_id\":\"default\",\"object_key\":\"k\"}", err)}
	}
	if len(questions) > arrayMost {
		return &query.UsageError{Message: fmt.Sprintf("an array of %d questions: %d at most; send them one a line", len(questions), arrayMost)}
	}
	answers := append(make([]byte, 0, len(questions)*answerGuess), '[')
	asker := e.Asker()
	for begin := 0; begin < len(questions); begin += lookupChunk {
		some, err := asker.Lookup(ctx, questions[begin:min(begin+lookupChunk, len(questions))], w)
		if err != nil {
			return err
		}
		for i, a := range some {
			if begin+i > 0 {
				answers = append(answers, ',')
			}
			answers = a.AppendJSON(answers)
		}
	}
	out.kind = oneJSON
	_, err = out.out.Write(append(answers, "]\n"...))
	return err
}

// answerGuess is about how long an answer's JSON is.
const answerGuess = 1 << 10

// fieldsTold is err; of fields that a question does not have it says which were meant, and which there are.
func fieldsTold(err error) error {
	var unknown *query.UnknownFieldsError
	if !errors.As(err, &unknown) {
		return err
	}
	text := unknownText("field", unknown.Fields, query.QuestionFields())
	if unknown.Nth > 0 {
		text = fmt.Sprintf("question %d: %s", unknown.Nth, text)
	}
	return errors.New(text)
}

// EachChunk reads questions, one JSON object a line, and calls f with up to n at a time. Empty lines are skipped, and so are fields that are
// none of a question's: lines of answers are questions too.
func EachChunk(r io.Reader, n int, f func([]query.Question) error) error {
	return eachChunk(r, n, query.ParseQuestion, f)
}

func eachChunk(r io.Reader, n int, parse func([]byte) (query.Question, error), f func([]query.Question) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), maxLine)
	var chunk []query.Question
	line, held := 0, 0
	for in.Scan() {
		line++
		if len(in.Bytes()) == 0 {
			continue
		}
		q, err := parse(in.Bytes())
		if err != nil {
			err = fieldsTold(err)
			return &query.UsageError{Message: fmt.Sprintf("line %d: %v; each line is an object like {\"tenant_id\":\"default\",\"object_key\":\"k\"}", line, err)}
		}
		held += len(in.Bytes())
		if chunk = append(chunk, q); len(chunk) == n || held >= chunkBytes {
			if err := f(chunk); err != nil {
				return err
			}
			clear(chunk) // the keys can go
			chunk, held = chunk[:0], 0
		}
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return &query.UsageError{Message: fmt.Sprintf("line %d: longer than %d MiB", line+1, maxLine>>20)}
	case err != nil:
		return fmt.Errorf("line %d: %w", line+1, err)
	}
	if len(chunk) > 0 {
		return f(chunk)
	}
	return nil
}

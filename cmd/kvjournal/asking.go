package main

import (
	"encoding/base64"
	"net/url"

	"github.com/spf13/cobra"
)

// asking is a command that asks one of httpapi's questions: its flags are the question's parameters.
type asking struct {
	cmd         *cobra.Command
	dir, output string
	params      []param
	fixed       url.Values // parameters that are no flags
	// nothing is what to say to a person of an answer without a line; nil: the table says it.
	nothing func(*target) (string, error)
}

// param is a flag and the parameter it becomes if it was given.
type param struct {
	flag, name string
	bytes      bool // may hold any bytes: it is sent in base64
}

func newAsking(cmd *cobra.Command) *asking {
	a := &asking{cmd: cmd, fixed: url.Values{}}
	dirFlag(cmd, &a.dir)
	outputFlag(cmd, &a.output)
	return a
}

// text adds a flag that takes text.
func (a *asking) text(flag, name, usage string) {
	a.cmd.Flags().String(flag, "", usage)
	a.params = append(a.params, param{flag, name, false})
}

// bytes adds a flag that takes any bytes.
func (a *asking) bytes(flag, name, usage string) {
	a.cmd.Flags().String(flag, "", usage)
	a.params = append(a.params, param{flag, name, true})
}

// number adds a flag that takes a number; otherwise is shown as its default, which the question knows.
func (a *asking) number(flag, name string, otherwise uint64, usage string) {
	a.cmd.Flags().Uint64(flag, otherwise, usage)
	a.params = append(a.params, param{flag, name, false})
}

// yes adds a flag that is given or not.
func (a *asking) yes(flag, name, usage string) {
	a.cmd.Flags().Bool(flag, false, usage)
	a.params = append(a.params, param{flag, name, false})
}

// whenHelp ends the help of commands that take moments.
const whenHelp = `A moment is Unix milliseconds, RFC 3339, a time ago (-5m), offset:N, seq:EPOCH/N, or now.`

// span adds --from and --to.
func (a *asking) span() {
	a.text("from", "from", "the moment it begins with (default: the first record)")
	a.text("to", "to", "the moment it ends with (default: the last record)")
}

// where adds --source, --backend and --tenant; without them, all.
func (a *asking) where() {
	a.text("source", "source", "source (default: all)")
	a.bytes("backend", "backend_id", "backend_id (default: all)")
	a.bytes("tenant", "tenant_id", "tenant_id (default: all)")
}

// values are the parameters of what was given.
func (a *asking) values() url.Values {
	v := url.Values{}
	for name, values := range a.fixed {
		v[name] = values
	}
	for _, p := range a.params {
		f := a.cmd.Flags().Lookup(p.flag)
		switch {
		case !f.Changed:
		case p.bytes:
			v.Set(p.name+"_base64", base64.StdEncoding.EncodeToString([]byte(f.Value.String())))
		default:
			v.Set(p.name, f.Value.String())
		}
	}
	return v
}

// ask asks the question of that name and prints each JSON line as it is, or, for people, through table; what says what is
// being done where that takes long.
func (a *asking) ask(name, what string, table func(printer) (show func([]byte) error, end func())) error {
	adviseOnMoments(a.cmd)
	say := ""
	shown := func(out printer) (func([]byte) error, func()) {
		show, end := table(out)
		return show, func() {
			end()
			if say != "" {
				out.say(say)
			}
		}
	}
	return printAnswer(a.cmd, a.dir, a.output, shown, func(t *target, show func([]byte) error) error {
		any := false
		err := t.question(a.cmd.Context(), name, a.values(), what, func(line []byte) error {
			any = true
			return show(line)
		})
		if err == nil && !any && a.nothing != nil && a.output == "table" {
			say, err = a.nothing(t)
		}
		if err != nil {
			return err
		}
		return a.noteHorizon(t, name)
	})
}

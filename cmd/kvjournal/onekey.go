package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// oneKey is the object that a command is about: its KEY, or --key-file.
type oneKey struct {
	inBase64 bool
	file     string
}

// maxKeyFile is the largest key taken from a file, in bytes.
const maxKeyFile = 16 << 20

// flags adds what goes with KEY.
func (k *oneKey) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&k.inBase64, "base64", false, "KEY is in base64")
	cmd.Flags().StringVar(&k.file, "key-file", "", "file that holds the key, every byte of it, in place of KEY; - is stdin. A command\nline takes 128 KiB at most")
}

// args checks that a command is given one key.
func (k *oneKey) args(_ *cobra.Command, args []string) error {
	switch {
	case k.file != "" && len(args) > 0:
		return usageError(errors.New("give KEY or --key-file, not both"))
	case k.file == "" && len(args) != 1:
		return usageError(fmt.Errorf("give one KEY, in quotes where it holds blanks; got %d: %q", len(args), args))
	}
	return nil
}

// of makes the key the one that a question is about.
func (k *oneKey) of(a *asking, args []string) error {
	var key string
	if k.file == "" {
		key = args[0]
	} else {
		b, err := k.read(a.cmd)
		if err != nil {
			return fmt.Errorf("--key-file: %w", err)
		}
		key = string(b)
	}
	if !k.inBase64 {
		key = base64.StdEncoding.EncodeToString([]byte(key))
	} else if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return usageError(fmt.Errorf("KEY %q is not base64: %w", shorten(key, tableWidth), err))
	}
	a.fixed.Set("object_key_base64", key)
	return nil
}

func (k *oneKey) read(cmd *cobra.Command) ([]byte, error) {
	in := cmd.InOrStdin()
	if k.file != "-" {
		f, err := os.Open(k.file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxKeyFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) == 0:
		return nil, usageError(fmt.Errorf("%s is empty: no key is", k.file))
	case len(b) > maxKeyFile:
		return nil, usageError(fmt.Errorf("%s has more than %d MiB", k.file, maxKeyFile>>20))
	}
	return b, nil
}

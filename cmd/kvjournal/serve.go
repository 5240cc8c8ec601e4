package main

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

func newServe() *cobra.Command {
	var dir string
	var listen listenFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer questions about a directory over HTTP, whether a recorder runs on it or not",
		Long: `Answers questions about a data directory over HTTP: a backup, a directory that was copied from elsewhere, or one that a
recorder writes to now and then. A recorder answers by itself (record --listen); while one runs on the directory, serve passes
questions on to it; of one that is stopped or hangs it says so. It ends at Ctrl-C or SIGTERM.

GET /openapi.yaml says what can be asked.`,
		Example: `  kvjournal serve --dir monday --listen 127.0.0.1:8901
  curl -s 'http://127.0.0.1:8901/v1/lookup?object_key=KEY'`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := listen.config(cmd)
			if err != nil {
				return err
			}
			if c.Address == "" {
				return &query.UsageError{Message: "nowhere to answer: give --listen HOST:PORT"}
			}
			c.Optional = false
			return runServe(cmd, dir, &c)
		},
	}
	dirFlag(cmd, &dir)
	listen.add(cmd)
	return asService(cmd)
}

func runServe(cmd *cobra.Command, dir string, c *httpapi.Listen) (err error) {
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	front := service.NewFront(dir, service.Options{Log: log})
	defer func() { err = errors.Join(err, front.Close()) }()
	if err := front.Try(cmd.Context()); err != nil {
		return err
	}
	server := httpapi.NewServer(log)
	defer server.End()
	if _, err := c.StartFront(server, front, log); err != nil {
		return err
	}
	<-cmd.Context().Done()
	return nil
}

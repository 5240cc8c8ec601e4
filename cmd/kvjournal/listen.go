package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/web"
)

// page is what is at / for people.
func page() http.Handler { return web.Handler() }

// listenFlags say where a service answers HTTP, and whom.
type listenFlags struct{ c httpapi.Listen }

func (f *listenFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.c.Address, "listen", httpapi.DefaultAddress, "address to answer HTTP on; port 0: any that is free; '': none")
	flags.StringVar(&f.c.TokenFile, "token-file", "", "file with the bearer tokens of those who may ask, one a line; needed on addresses\nthat others can reach")
	flags.StringVar(&f.c.ReconcileTokenFile, "reconcile-token-file", "", "file with the bearer tokens of those who may also have the master read\n(default: nobody over HTTP)")
	flags.StringVar(&f.c.TLSCert, "tls-cert", "", "PEM file with the certificate for --listen; read again when it changes")
	flags.StringVar(&f.c.TLSKey, "tls-key", "", "PEM file with its key")
	flags.BoolVar(&f.c.Insecure, "insecure-listen", false, "allow --listen on an address that others can reach without a token")
	flags.StringArrayVar(&f.c.AllowHosts, "allow-host", nil, "a name by which this server is asked, beside localhost, its own and addresses;\nrepeatable")
}

// config is what the flags say. The default address is no demand: where it is taken the service goes on without.
func (f *listenFlags) config(cmd *cobra.Command) (httpapi.Listen, error) {
	c := f.c
	c.Page, c.Optional = page(), !cmd.Flags().Changed("listen")
	return c, c.Check()
}

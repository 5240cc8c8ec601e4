package main

import "github.com/spf13/cobra"

func newRecord() *cobra.Command { return &cobra.Command{Use: "record"} }

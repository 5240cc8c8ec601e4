// Package report turns measurements into medians with their spread, and those into a table, JSON and plots.
package report

// Command mooncakesim publishes the KV event stream of a Mooncake Store master that does not exist: traffic for
// kvjournal's tests, measurements and demos. It is flags around package journal/mooncaketest; mooncakesim --help
// explains them.
//
// Talk goes to stderr. At the end one JSON object goes to stdout: the counters of all publisher processes that were
// simulated, added up, how long it took in seconds, and the events published in each.
package main

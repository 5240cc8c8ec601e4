// Command mooncakesim publishes the KV event stream of a Mooncake Store master that does not exist, and with --admin serves
// its admin API: traffic for kvjournal's tests, measurements and demos. It is flags around package journal/mooncaketest;
// mooncakesim --help explains them.
//
// Talk goes to stderr. At the end one JSON object goes to stdout: the counters of all publisher processes that were
// simulated, added up, the objects that were changed without an event, if any, how long it took in seconds, and the events
// published in each.
package main

// Package browsertest tests the page in a real Chromium: a module of its own, so that kvjournal needs no browser's protocol.
//
//	world_test.go    what is recorded: a night with a loss and a restart, a hostile publisher, many objects, a live master
//	browser_test.go  the browser, and a tab for each test. Whatever the page says on its console, each exception and each violation of its
//	                 policy fails the test
//	…_test.go        flows of a person, keys that would be markup, long lists, widths and colours
//
// `make browser` installs Debian's chromium and runs it; KVJOURNAL_CHROMIUM names another one.
package browsertest

// Package message makes what the contenders are given: the messages of a publisher with an endless queue, as journal/mooncaketest
// makes them, in groups that become durable together. Keys have the entropy of real captures: all are 256 random bits, as hex.
//
// # Shapes
//
//	64    64 events a message, 32 messages a group: a master at full speed
//	1     1 event a message, 512 messages a group: a master whose publisher sends each change at once, behind a busy disk
//	day   both: 400 messages as captures of real masters have them (two thirds hold one event, most others 2 to 21), 8 a group,
//	      then 200 of 64 events, 32 a group; three tenants, the last of which is cleared now and then
//
// Equal options give equal messages.
package message

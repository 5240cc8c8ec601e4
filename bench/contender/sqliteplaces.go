package contender

import (
	"database/sql/driver"
	"errors"

	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/journal/event"
)

// sqlitePlaces is the journal table, and beside it the events in the order that questions need: an object's newest event on a
// medium by a time is one seek. id is seq * 65536 + the event's place in its batch.
type sqlitePlaces struct {
	*sqliteJournal
	scan   event.Batch
	scopes map[string]int64 // tenants; there is one backend

	addEvent, addClear, addScope driver.Stmt
	at, history                  driver.Stmt
}

var sqliteEventTables = []string{
	`CREATE TABLE IF NOT EXISTS scopes(id INTEGER PRIMARY KEY, tenant BLOB NOT NULL UNIQUE)`,
	`CREATE TABLE IF NOT EXISTS events(object_key BLOB NOT NULL, scope INTEGER NOT NULL, medium INTEGER NOT NULL, time INTEGER NOT NULL,
		id INTEGER NOT NULL, stored INTEGER NOT NULL, event_id INTEGER, PRIMARY KEY(object_key, scope, medium, time, id)) WITHOUT ROWID`,
	`CREATE TABLE IF NOT EXISTS clears(scope INTEGER NOT NULL, time INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY(scope, time, id)) WITHOUT ROWID`,
}

// sqliteAt is the newest event on either medium, twice its id and one if it is `stored`, and the newest clear.
const sqliteAt = `SELECT
	(SELECT id*2+stored FROM events WHERE object_key=?1 AND scope=?2 AND medium=1 AND time<=?3 ORDER BY time DESC, id DESC LIMIT 1),
	(SELECT id*2+stored FROM events WHERE object_key=?1 AND scope=?2 AND medium=2 AND time<=?3 ORDER BY time DESC, id DESC LIMIT 1),
	(SELECT id*2 FROM clears WHERE scope=?2 AND time<=?3 ORDER BY time DESC, id DESC LIMIT 1)`

// forever is a time behind all others.
const forever = int64(1) << 62

func openSQLitePlaces(d driver.Driver) func(dir string) (Places, error) {
	return func(dir string) (Places, error) {
		j, err := newSQLite(d, dir)
		if err != nil {
			return nil, err
		}
		p := &sqlitePlaces{sqliteJournal: j, scopes: map[string]int64{}}
		if err := p.open(); err != nil {
			return nil, errors.Join(err, j.Close())
		}
		return p, nil
	}
}

func (p *sqlitePlaces) open() error {
	for _, t := range sqliteEventTables {
		if err := p.exec(t); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		stmt *driver.Stmt
		text string
	}{
		{&p.addEvent, "INSERT INTO events VALUES(?,?,?,?,?,?,?)"},
		{&p.addClear, "INSERT INTO clears VALUES(?,?,?)"},
		{&p.addScope, "INSERT INTO scopes VALUES(?,?)"},
		{&p.at, sqliteAt},
		{&p.history, "SELECT medium, time, id, stored, event_id FROM events WHERE object_key=? AND scope=? ORDER BY time, id"},
	} {
		var err error
		if *s.stmt, err = p.prepare(s.text); err != nil {
			return err
		}
	}
	all, err := p.prepare("SELECT id, tenant FROM scopes")
	if err != nil {
		return err
	}
	return p.query(all, func(row []driver.Value) error {
		p.scopes[string(row[1].([]byte))] = row[0].(int64)
		return nil
	})
}

func (p *sqlitePlaces) Append(group []message.Message) error {
	return p.within(func() error {
		for i := range group {
			if err := p.add(&group[i]); err != nil {
				return err
			}
			if err := p.apply(&group[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *sqlitePlaces) apply(m *message.Message) error {
	p.scan.Scan(m.Frames)
	for i := range p.scan.Events {
		e, id := &p.scan.Events[i], int64(m.Seq)<<16+int64(i)
		scope, err := p.scope(e.Tenant)
		if err != nil {
			return err
		}
		if e.Type == event.Cleared {
			if err := p.run(p.addClear, scope, m.Time, id); err != nil {
				return err
			}
			continue
		}
		medium, stored := int64(CPU), int64(0)
		if string(e.Medium) != "cpu" {
			medium = int64(Disk)
		}
		if e.Type == event.Stored {
			stored = 1
		}
		if err := p.run(p.addEvent, e.Key, scope, medium, m.Time, id, stored, int64(e.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (p *sqlitePlaces) scope(tenant []byte) (int64, error) {
	if id, known := p.scopes[string(tenant)]; known {
		return id, nil
	}
	id := int64(len(p.scopes)) + 1
	p.scopes[string(tenant)] = id
	return id, p.run(p.addScope, id, tenant)
}

func (p *sqlitePlaces) CaughtUp() error { return nil }

func (p *sqlitePlaces) Now(o Object) (Media, error) { return p.At(o, forever) }

func (p *sqlitePlaces) At(o Object, ms int64) (m Media, err error) {
	err = p.query(p.at, func(row []driver.Value) error {
		cleared, _ := row[2].(int64)
		for i, bit := range [...]Media{CPU, Disk} {
			if newest, ok := row[i].(int64); ok && newest&1 == 1 && newest > cleared {
				m |= bit
			}
		}
		return nil
	}, []byte(o.Key), p.scopes[o.Tenant], ms)
	return m, err
}

// NowMany asks one by one in one transaction.
func (p *sqlitePlaces) NowMany(dst []Media, objects []Object) ([]Media, error) {
	if err := p.exec("BEGIN"); err != nil {
		return dst, err
	}
	for _, o := range objects {
		m, err := p.Now(o)
		if err != nil {
			return dst, errors.Join(err, p.exec("COMMIT"))
		}
		dst = append(dst, m)
	}
	return dst, p.exec("COMMIT")
}

func (p *sqlitePlaces) History(o Object) (n int, err error) {
	err = p.query(p.history, func([]driver.Value) error { n++; return nil }, []byte(o.Key), p.scopes[o.Tenant])
	return n, err
}

package contender

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/kvjournal/kvjournal/bench/message"
)

// sqliteSettings: the log is synced at every commit (FULL), the cache is as large as kvjournal's.
var sqliteSettings = []string{"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-65536"}

// sqliteConn is what both drivers have.
type sqliteConn interface {
	driver.Conn
	driver.ExecerContext
	driver.ConnPrepareContext
}

const sqliteJournalTable = `CREATE TABLE IF NOT EXISTS journal(seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, received INTEGER NOT NULL, payload BLOB NOT NULL)`

// sqliteJournal is a table of messages, on the driver itself: database/sql would cost more than SQLite does.
type sqliteJournal struct {
	conn   sqliteConn
	stmts  []driver.Stmt // all prepared, to close
	begin  driver.Stmt
	commit driver.Stmt
	insert driver.Stmt
	get    driver.Stmt
	args   []driver.NamedValue
	row    []driver.Value
}

func openSQLite(d driver.Driver) func(dir string) (Journal, error) {
	return func(dir string) (Journal, error) {
		j, err := newSQLite(d, dir)
		if err != nil {
			return nil, err
		}
		return j, nil
	}
}

func newSQLite(d driver.Driver, dir string) (*sqliteJournal, error) {
	conn, err := d.Open("file:" + filepath.Join(dir, "journal.db"))
	if err != nil {
		return nil, err
	}
	own, ok := conn.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's %T lacks what is needed", conn), conn.Close())
	}
	j := &sqliteJournal{conn: own}
	for _, text := range append(sqliteSettings, sqliteJournalTable) {
		if err == nil {
			err = j.exec(text)
		}
	}
	for _, s := range []struct {
		stmt *driver.Stmt
		text string
	}{
		{&j.begin, "BEGIN IMMEDIATE"},
		{&j.commit, "COMMIT"},
		{&j.insert, "INSERT INTO journal VALUES(?,?,?,?)"},
		{&j.get, "SELECT payload FROM journal WHERE seq=?"},
	} {
		if err == nil {
			*s.stmt, err = j.prepare(s.text)
		}
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func (j *sqliteJournal) exec(text string) error {
	_, err := j.conn.ExecContext(context.Background(), text, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

func (j *sqliteJournal) prepare(text string) (driver.Stmt, error) {
	s, err := j.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	j.stmts = append(j.stmts, s)
	return s, nil
}

// values are the arguments of one statement, in memory that is used again.
func (j *sqliteJournal) values(vs ...driver.Value) []driver.NamedValue {
	j.args = j.args[:0]
	for i, v := range vs {
		j.args = append(j.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return j.args
}

func (j *sqliteJournal) run(s driver.Stmt, vs ...driver.Value) error {
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), j.values(vs...))
	return err
}

// query calls f with each row; the row is valid until f returns.
func (j *sqliteJournal) query(s driver.Stmt, f func(row []driver.Value) error, vs ...driver.Value) error {
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), j.values(vs...))
	if err != nil {
		return err
	}
	defer rows.Close()
	if n := len(rows.Columns()); cap(j.row) < n {
		j.row = make([]driver.Value, n)
	}
	row := j.row[:len(rows.Columns())]
	for {
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return err
		}
	}
}

// within runs f in one transaction.
func (j *sqliteJournal) within(f func() error) error {
	if err := j.run(j.begin); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, j.exec("ROLLBACK"))
	}
	return j.run(j.commit)
}

func (j *sqliteJournal) add(m *message.Message) error {
	return j.run(j.insert, int64(m.Seq), m.Time, m.Received, m.Payload())
}

func (j *sqliteJournal) Append(group []message.Message) error {
	return j.within(func() error {
		for i := range group {
			if err := j.add(&group[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *sqliteJournal) Sync() error { return nil }

func (j *sqliteJournal) Last() (uint64, error) {
	s, err := j.prepare("SELECT coalesce(max(seq),0) FROM journal")
	if err != nil {
		return 0, err
	}
	var last int64
	err = j.query(s, func(row []driver.Value) error { last = row[0].(int64); return nil })
	return uint64(last), err
}

func (j *sqliteJournal) ReadAll(f func(seq uint64, payload []byte) error) error {
	s, err := j.prepare("SELECT seq, payload FROM journal ORDER BY seq")
	if err != nil {
		return err
	}
	return j.query(s, func(row []driver.Value) error { return f(uint64(row[0].(int64)), row[1].([]byte)) })
}

func (j *sqliteJournal) Get(seq uint64) (out []byte, err error) {
	err = j.query(j.get, func(row []driver.Value) error { out = row[0].([]byte); return nil }, int64(seq))
	if err == nil && out == nil {
		err = fmt.Errorf("seq %d is not there", seq)
	}
	return out, err
}

func (j *sqliteJournal) Settle() error { return j.exec("PRAGMA wal_checkpoint(TRUNCATE)") }

func (j *sqliteJournal) Close() error {
	var err error
	for _, s := range j.stmts {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, j.conn.Close())
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// account is the database's user and the database's name.
	account = "visitors"
	// mostConnections is how many connections one backend has to the database at most.
	mostConnections = 10
	// mostAddress is how many letters of a visitor's address the table takes.
	mostAddress = 64
	// noSuchTable is MySQL's error for a table that does not exist.
	noSuchTable = 1146
)

// visit is one look at the page.
type visit struct {
	Time time.Time `json:"time"`
	// From is the visitor's address.
	From string `json:"from"`
}

// store keeps visits in a MySQL database.
type store struct{ db *sql.DB }

// openStore connects to nothing yet: each use does, so that a database that comes later, or comes back,
// is found.
func openStore(host, password string) (*store, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", host+":3306"
	config.User, config.Passwd, config.DBName = account, password, account
	config.ParseTime = true
	config.Timeout, config.ReadTimeout, config.WriteTimeout = 3*time.Second, 3*time.Second, 3*time.Second
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("database %q: %w", host, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(mostConnections)
	// A server that restarts leaves none of its connections behind for long.
	db.SetConnMaxLifetime(time.Minute)
	return &store{db: db}, nil
}

// add keeps a visit. An empty database gets its table by that.
func (s *store) add(ctx context.Context, from string) error {
	insert := func() error {
		_, err := s.db.ExecContext(ctx, "INSERT INTO visits (time, visitor) VALUES (UTC_TIMESTAMP(3), ?)", from)
		return err
	}
	err := insert()
	if missing, ok := errors.AsType[*mysql.MySQLError](err); !ok || missing.Number != noSuchTable {
		return err
	}
	if _, err := s.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS visits (
		id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, time DATETIME(3) NOT NULL, visitor VARCHAR(64) NOT NULL)`); err != nil {
		return fmt.Errorf("create the table: %w", err)
	}
	return insert()
}

// last returns how many visits there were, and the last ones, the newest first.
func (s *store) last(ctx context.Context, most int) (total int, visits []visit, err error) {
	if err := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM visits").Scan(&total); err != nil {
		return 0, nil, fmt.Errorf("count the visits: %w", err)
	}
	rows, err := s.db.QueryContext(ctx, "SELECT time, visitor FROM visits ORDER BY id DESC LIMIT ?", most)
	if err != nil {
		return 0, nil, fmt.Errorf("read the visits: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v visit
		if err := rows.Scan(&v.Time, &v.From); err != nil {
			return 0, nil, fmt.Errorf("read a visit: %w", err)
		}
		visits = append(visits, v)
	}
	return total, visits, rows.Err()
}

// busy returns how many connections to the database are at work, of mostConnections.
func (s *store) busy() int { return s.db.Stats().InUse }

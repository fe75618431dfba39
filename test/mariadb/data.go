package mariadb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// systemTables are the files of SQL from which a new database is made. Older versions
// begin their names with "mysql_", newer ones with "mariadb_".
var systemTables = []string{"system_tables.sql", "performance_tables.sql", "system_tables_data.sql"} //nolint:gochecknoglobals // A list.

// makeDir makes the server's directory, for the user that the server runs as.
func (s *Server) makeDir() (err error) {
	if s.Dir == "" {
		s.remove = true
		s.Dir, err = os.MkdirTemp("/tmp", "mariadb") // Short: a socket is in it.
	} else if s.Dir, err = filepath.Abs(s.Dir); err == nil {
		err = os.Mkdir(s.Dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("make the directory of MariaDB: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	if s.user, err = nobody(); err == nil {
		err = errors.Join(os.Chown(s.Dir, int(s.user.Uid), int(s.user.Gid)), reachable(filepath.Dir(s.Dir)))
	}
	if err == nil && reachable(s.programs.base) != nil {
		err = s.copyPrograms()
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.Dir))
	}
	return nil
}

// nobody is the user for a server that root starts.
func nobody() (*syscall.Credential, error) {
	account, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("find a user for MariaDB, which refuses to run as root: %w", err)
	}
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
}

// reachable fails where other users may not go.
func reachable(dir string) error {
	for above := dir; ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return fmt.Errorf("find the directory of MariaDB: %w", err)
		}
		if info.Mode()&1 == 0 {
			return fmt.Errorf("MariaDB, which refuses to run as root, runs as nobody, who may not go to %s: its mode is %v", above, info.Mode())
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

// copyPrograms copies the programs to where nobody may go, as from a working tree in
// root's home. They go with the directory.
func (s *Server) copyPrograms() error {
	into := s.file("programs")
	if err := os.CopyFS(into, os.DirFS(s.programs.base)); err != nil {
		return fmt.Errorf("copy MariaDB's programs: %w", err)
	}
	found, err := findPrograms(filepath.Join(into, "bin"))
	s.programs = found
	return err
}

// bootstrap makes the database. Its only account is root's.
func (s *Server) bootstrap(ctx context.Context) error {
	var script bytes.Buffer
	// Root is to have a password, instead of the name of a user of the machine.
	script.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\nSET @skip_auth_anonymous=1;\n")
	for _, name := range systemTables {
		found, _ := filepath.Glob(filepath.Join(s.programs.share, "m*_"+name)) // The pattern is well formed.
		if len(found) != 1 {
			return fmt.Errorf("there is no m*_%s in %s", name, s.programs.share)
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			return fmt.Errorf("read how a database is made: %w", err)
		}
		script.Write(append(text, '\n'))
	}
	fmt.Fprintf(&script, "DELETE FROM global_priv WHERE User <> 'mariadb.sys';\nFLUSH PRIVILEGES;\n"+
		"CREATE USER root@'127.0.0.1' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n", s.Password)
	input := s.file("bootstrap.sql")
	if err := errors.Join(os.Mkdir(s.file("data"), 0o700), os.WriteFile(input, script.Bytes(), 0o600)); err != nil {
		return fmt.Errorf("prepare the database: %w", err)
	}
	defer func() { _ = os.Remove(input) }() // It has the password, and goes with the directory at the latest.
	if s.user != nil {
		if err := os.Chown(s.file("data"), int(s.user.Uid), int(s.user.Gid)); err != nil {
			return fmt.Errorf("prepare the database: %w", err)
		}
	}
	child, err := s.start(append(s.programs.arguments(s.file("data")), "--bootstrap", "--skip-networking"), input)
	if err != nil {
		return err
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return fmt.Errorf("making the database: %w", context.Cause(ctx))
	}
	if child.ExitCode() != 0 {
		return fmt.Errorf("making the database: mariadbd --bootstrap ended with exit code %d; %s", child.ExitCode(), child.Quote())
	}
	return nil
}

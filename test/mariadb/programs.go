package mariadb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// programs are MariaDB's, and what the server needs beside them.
type programs struct {
	server, client string
	// base has all of it; share has SQL files and messages.
	base, share string
}

// findPrograms returns those of a directory; an empty name is searched for as
// Options.Bin says.
func findPrograms(dir string) (found programs, err error) {
	bin, err := filepath.Abs(dir)
	if err != nil {
		return found, fmt.Errorf("find MariaDB: %w", err)
	}
	for above := bin; dir == ""; above = filepath.Dir(above) {
		bin = filepath.Join(above, ".dev", "mariadb", "bin")
		if _, err := os.Stat(bin); err == nil {
			break
		}
		if above == filepath.Dir(above) {
			return found, errors.New(`no .dev/mariadb here or above; run "make mariadb"`)
		}
	}
	found = programs{server: filepath.Join(bin, "mariadbd"), client: filepath.Join(bin, "mariadb")}
	// Of programs that were on PATH there are only links, and their folder is called sbin.
	installed, err := filepath.EvalSymlinks(found.server)
	if err != nil {
		return found, fmt.Errorf(`%q has no MariaDB (run "make mariadb"): %w`, bin, err)
	}
	found.base = filepath.Dir(filepath.Dir(installed))
	for _, share := range []string{"usr/share/mariadb", "usr/share/mysql", "share/mariadb", "share/mysql"} {
		found.share = filepath.Join(found.base, share)
		if files, _ := filepath.Glob(filepath.Join(found.share, "m*_system_tables.sql")); len(files) > 0 {
			return found, nil
		}
	}
	return found, fmt.Errorf("%s is there, but its SQL files are not: no m*_system_tables.sql below %s/share", installed, found.base)
}

// arguments are those of every mariadbd.
func (p programs) arguments(data string) []string {
	return []string{
		"--no-defaults", "--basedir=" + p.base, "--lc-messages-dir=" + p.share, "--datadir=" + data, "--tmpdir=" + data,
		// Small and quick: nothing here outlives a test.
		"--innodb-buffer-pool-size=16M", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=2", "--performance-schema=OFF",
	}
}

package dumps

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/mariadb"
	"github.com/ensign-operator/ensign/test/mariadb/thief"
)

const (
	version  = "10.11.2-MariaDB"
	treasure = "what only the operator's user may read"
	// name is that of a dump.
	name = "20260101T000000Z"
)

// place is a directory for dumps, and a file that nobody is to get.
type place struct {
	root, treasure string
	// bin has the clients.
	bin string
}

func newPlace(t *testing.T) place {
	t.Helper()
	bin, err := filepath.Abs("../../.dev/mariadb/bin")
	if err != nil {
		t.Fatal(err)
	}
	p := place{filepath.Join(t.TempDir(), "dumps"), filepath.Join(t.TempDir(), "treasure"), bin}
	if err := os.MkdirAll(p.file(""), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.treasure, []byte(treasure), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// file is a file beside the dumps.
func (p place) file(name string) string { return filepath.Join(p.root, "tenant", "db", name) }

// run runs the script against a server at a port, and returns what it says; failed tells
// whether it failed.
func (p place) run(t *testing.T, action string, port int, password string, more ...string) (said string, failed bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", append([]string{
		"../../roles/mysqlbackup/files/dumps.sh", action, "root=" + p.root, "path=tenant/db", "flavor=mariadb",
		"host=127.0.0.1", "port=" + strconv.Itoa(port), "user=root", "ca=",
	}, more...)...)
	command.Env = []string{"PATH=" + p.bin + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	command.Stdin = strings.NewReader(password)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err != nil
}

// roomy are the parameters of a dump for which there is room.
func roomy(databases ...string) []string { return room(1<<30, 3, databases...) }

func room(quota, keep int, databases ...string) []string {
	return append([]string{
		"keep=" + strconv.Itoa(keep), "share=tenant", "quota=" + strconv.Itoa(quota), "remedy=Do something.", "--",
	}, databases...)
}

func (p place) hostile(t *testing.T, honest ...string) *thief.Server {
	t.Helper()
	o := thief.Options{Wants: p.treasure, Version: version, Honest: map[string][][]string{}}
	for _, part := range honest {
		o.Honest[part] = nil
	}
	server, err := thief.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// The first statement that is not among the honest ones is answered by the wish for a file.
func TestADumpGivesNoFile(t *testing.T) {
	for _, honest := range [][]string{nil, {"SET"}, {"SET", "START"}, {"SET", "START", "SHOW VARIABLES"}, {"SET", "START", "SHOW", "UNLOCK"}} {
		p := newPlace(t)
		server := p.hostile(t, honest...)
		said, failed := p.run(t, "dump", server.Port, "secret", roomy("shop")...)
		if !failed || len(server.Asked()) == 0 {
			t.Errorf("honest about %q: asked for a file at %q, and the dump said %q", honest, server.Asked(), said)
		}
		if stolen := server.Stolen(); len(stolen) > 0 {
			t.Errorf("honest about %q: it was given %q", honest, stolen)
		}
		if left, err := os.ReadDir(p.file("")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// Whoever may write to the database, or to the volume, decides what is in a dump.
func TestARestoreGivesNoFileAndRunsNothing(t *testing.T) {
	for _, statements := range []string{
		"SELECT 1;",
		"LOAD DATA LOCAL INFILE 'TREASURE' INTO TABLE t;",
		"load data local infile 'TREASURE' into table t;",
		"/*!50000 LOAD DATA LOCAL INFILE 'TREASURE' INTO TABLE t */;",
		"DELIMITER ;;\nLOAD XML LOCAL INFILE 'TREASURE' INTO TABLE t;;",
		"\\! cp TREASURE TREASURE.copy\n",
		"system cp TREASURE TREASURE.copy\n",
		"SET a = 1; \\! cp TREASURE TREASURE.copy\n",
		"tee TREASURE.copy\nSET a = 1;",
		"source TREASURE\n",
		"\\. TREASURE\n",
	} {
		p := newPlace(t)
		server := p.hostile(t, "SET")
		text := strings.ReplaceAll(statements, "TREASURE", p.treasure) + "\n-- Dump completed\n"
		if err := os.WriteFile(p.file(name+".sql"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, _ := p.run(t, "restore", server.Port, "secret", "dump="+name, "once=1", "--")
		if stolen := server.Stolen(); len(stolen) > 0 {
			t.Errorf("%q: the server was given %q", statements, stolen)
		}
		if asked := strings.Join(server.Asked(), ";"); strings.Contains(asked+said, treasure) {
			t.Errorf("%q: the file was executed: %q, %q", statements, asked, said)
		}
		if _, err := os.Stat(p.treasure + ".copy"); !os.IsNotExist(err) {
			t.Errorf("%q: a command of the dump was executed: %v", statements, err)
		}
	}
}

func TestRoomForDumps(t *testing.T) {
	server, err := mariadb.Start(t.Context(), mariadb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := server.Query(t.Context(), "CREATE DATABASE shop; CREATE TABLE shop.t (v LONGTEXT); INSERT INTO shop.t VALUES (REPEAT('x', 6000000))"); err != nil {
		t.Fatal(err)
	}
	const dump = 6_000_000
	old := func(p place, names ...string) {
		for _, name := range names {
			if err := os.WriteFile(p.file(name), make([]byte, dump), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	const first, second = "20200101T000000Z.sql", "20200102T000000Z.sql"

	t.Run("a dump that does not fit leaves the earlier ones", func(t *testing.T) {
		p := newPlace(t)
		old(p, first)
		said, failed := p.run(t, "dump", server.Port, server.Password, room(2*dump-1, 1, "shop")...)
		if want := "the dump does not fit: 11999999 bytes are allowed"; !failed || !strings.Contains(said, want) || !strings.HasSuffix(said, "Do something.\n") {
			t.Errorf("got %q, want %q and a remedy", said, want)
		}
		p.has(t, first)
	})
	t.Run("dumps of other backups in the share count", func(t *testing.T) {
		p := newPlace(t)
		other := filepath.Join(p.root, "tenant", "other", first+".part") // It is being written.
		if err := errors.Join(os.Mkdir(filepath.Dir(other), 0o700), os.WriteFile(other, make([]byte, dump), 0o600)); err != nil {
			t.Fatal(err)
		}
		if said, failed := p.run(t, "dump", server.Port, server.Password, room(2*dump-1, 1, "shop")...); !failed {
			t.Errorf("got %q", said)
		}
		p.has(t)
	})
	t.Run("dumps in another share do not", func(t *testing.T) {
		p := newPlace(t)
		other := filepath.Join(p.root, "neighbor", first)
		if err := errors.Join(os.Mkdir(filepath.Dir(other), 0o700), os.WriteFile(other, make([]byte, dump), 0o600)); err != nil {
			t.Fatal(err)
		}
		if said, failed := p.run(t, "dump", server.Port, server.Password, room(2*dump-1, 1, "shop")...); failed {
			t.Errorf("got %q", said)
		}
	})
	t.Run("a lower number to keep makes room", func(t *testing.T) {
		p := newPlace(t)
		old(p, first, second)
		if said, failed := p.run(t, "dump", server.Port, server.Password, room(2*dump+1_000_000, 1, "shop")...); failed {
			t.Errorf("got %q", said)
		}
		if _, err := os.Stat(p.file(second)); !os.IsNotExist(err) {
			t.Errorf("more than one is kept: %v", err)
		}
	})
	t.Run("a dump far too large ends at the quota", func(t *testing.T) {
		p := newPlace(t)
		bin := t.TempDir()
		// In the place of mariadb-dump, whose server hardly ends its answer.
		if err := os.WriteFile(filepath.Join(bin, "mariadb-dump"), []byte("#!/bin/sh\nexec head -c 300000000 /dev/zero\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.bin = bin + ":" + p.bin
		said, failed := p.run(t, "dump", server.Port, server.Password, room(10_000_000, 1, "shop")...)
		if !failed || !strings.Contains(said, "does not fit") {
			t.Errorf("got %q", said)
		}
		p.has(t)
	})
}

// has expects the files beside the dumps.
func (p place) has(t *testing.T, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(p.file(""))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

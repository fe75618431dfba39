package mariadb_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/test/mariadb"
)

func start(t *testing.T, options mariadb.Options) *mariadb.Server {
	t.Helper()
	server, err := mariadb.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		if err := syscall.Kill(server.PID(), 0); err == nil {
			t.Errorf("the server still runs, as process %d", server.PID())
		}
	})
	return server
}

func ask(t *testing.T, server *mariadb.Server, statements, want string) {
	t.Helper()
	if got, err := server.Query(t.Context(), statements); err != nil || got != want {
		t.Errorf("%s: got %q and %v, want %q", statements, got, err, want)
	}
}

// What a server is given outlives its end, in order or not, and nothing outlives Stop.
func TestDataOutliveRestarts(t *testing.T) {
	began := time.Now()
	server := start(t, mariadb.Options{})
	t.Logf("up after %s at %s", time.Since(began), server.Address())
	ask(t, server, "SELECT concat(user, '@', host) FROM mysql.global_priv WHERE JSON_VALUE(priv, '$.account_locked') IS NULL", "root@127.0.0.1")
	ask(t, server, "CREATE DATABASE d; CREATE TABLE d.t (c TEXT); INSERT INTO d.t VALUES ('first')", "")
	for how, end := range map[string]func() error{"halted": server.Halt, "killed": server.Kill, "running": func() error { return nil }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		ask(t, server, "SELECT c FROM d.t", "first")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(server.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", server.Dir, err)
	}
}

func TestLogin(t *testing.T) {
	server := start(t, mariadb.Options{})
	ask(t, server, "CREATE DATABASE d; CREATE USER `o'b\"%`@'127.0.0.1' IDENTIFIED BY 'é\"\\\\'; GRANT SELECT ON d.* TO `o'b\"%`@'127.0.0.1'", "")
	login := mariadb.Login{User: `o'b"%`, Password: `é"\`, Database: "d"}
	if got, err := server.QueryAs(t.Context(), login, "SELECT DATABASE()"); err != nil || got != "d" {
		t.Errorf("got %q and %v", got, err)
	}
	login.Password = "another"
	if _, err := server.QueryAs(t.Context(), login, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "ERROR 1045") {
		t.Errorf("a wrong password: got %v, want error 1045", err)
	}
}

func TestTLS(t *testing.T) {
	server := start(t, mariadb.Options{TLS: true, Args: []string{"--require-secure-transport=ON"}})
	if got, err := server.Query(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'"); err != nil || len(got) <= len("Ssl_cipher\t") {
		t.Errorf("got %q and %v, want a cipher", got, err)
	}
}

// Only the server's user may look at the data. A directory of the test's own stays.
func TestDirectory(t *testing.T) {
	above, err := os.MkdirTemp("/tmp", "t") //nolint:usetesting // Short, and nobody may go there.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	if err := os.Chmod(above, 0o755); err != nil {
		t.Fatal(err)
	}
	server := start(t, mariadb.Options{Dir: filepath.Join(above, "own")})
	info, err := os.Stat(server.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: mode %v, error %v", server.Dir, info.Mode(), err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(server.Dir, "data", "ibdata1")); err != nil {
		t.Error(err)
	}
}

// What fails leaves nothing, and says why.
func TestFailedStart(t *testing.T) {
	before, _ := filepath.Glob("/tmp/mariadb*")
	_, err := mariadb.Start(t.Context(), mariadb.Options{Args: []string{"--no-such-option"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v, want an error that quotes the log", err)
	}
	if after, _ := filepath.Glob("/tmp/mariadb*"); len(after) > len(before) {
		t.Errorf("left: %v", after)
	}
	if _, err := mariadb.Start(t.Context(), mariadb.Options{Bin: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "make mariadb") {
		t.Errorf("no programs: got %v, want the remedy", err)
	}
}

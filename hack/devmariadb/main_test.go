package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/mariadb"
)

func TestTheLoginIsPrivateAndOfOneServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "login")
	if err := writeLogin(path, &mariadb.Server{Host: "127.0.0.1", Port: 3307, Password: "first"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("error %v, mode %v", err, info.Mode())
	}
	err := writeLogin(path, &mariadb.Server{Host: "127.0.0.1", Port: 3308, Password: "second"})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the login of another server was replaced: error %v", err)
	}
	output, err := exec.Command("sh", "-c", `. "$1" && sh -c 'echo "$MYSQL_HOST $MYSQL_PORT $MYSQL_ROOT_PASSWORD"'`, "sh", path).CombinedOutput()
	if got := string(output); err != nil || got != "127.0.0.1 3307 first\n" {
		t.Errorf("a program that a shell starts has %q (error %v)", got, err)
	}
}

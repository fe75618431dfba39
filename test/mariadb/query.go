package mariadb

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Login is an account, and the database to begin in, which may be empty.
type Login struct{ User, Password, Database string }

// SecretLabels are those of a Secret whose password the operator may use at a server.
func SecretLabels() map[string]string {
	return map[string]string{"myapp.myorg.tld/mysql-login": "allowed"}
}

// Query sends statements as root, and returns the rows of the answers, a line each
// with tabs between the columns.
func (s *Server) Query(ctx context.Context, statements string) (string, error) {
	return s.QueryAs(ctx, Login{User: "root", Password: s.Password}, statements)
}

// QueryAs sends statements as another user, over TCP, as applications do. The error has
// what the server said: "ERROR 1045 (28000): Access denied …".
func (s *Server) QueryAs(ctx context.Context, as Login, statements string) (string, error) {
	args := []string{
		"--no-defaults", "--protocol=tcp", "--host=" + s.Host, "--port=" + strconv.Itoa(s.Port), "--user=" + as.User,
		"--connect-timeout=10", "--default-character-set=utf8mb4", "--batch", "--skip-column-names",
	}
	if s.CA != nil {
		args = append(args, "--ssl-ca="+s.file("ca.crt"), "--ssl-verify-server-cert")
	}
	if as.Database != "" {
		args = append(args, "--database="+as.Database)
	}
	command := exec.CommandContext(ctx, s.programs.client, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "MYSQL_PWD=" + as.Password} // Not an argument, which everybody sees.
	command.Stdin = strings.NewReader(statements)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("ask MariaDB as %q: %w: %s", as.User, err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

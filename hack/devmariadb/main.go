// Command devmariadb runs a private MariaDB server in the foreground until it is
// interrupted, and leaves nothing behind. `make devmariadb` calls it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/mariadb"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "devmariadb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("devmariadb", flag.ContinueOnError)
	flags.SetOutput(out)
	login := flags.String("login", ".dev/mariadb.env", "`file` to write, which a shell reads: the variables MYSQL_HOST, MYSQL_PORT and MYSQL_ROOT_PASSWORD")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	began := time.Now()
	server, err := mariadb.Start(ctx, mariadb.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, server.Stop()); err == nil {
			say("everything is down")
		}
	}()
	if err := writeLogin(*login, server); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(*login)) }()
	say("address: %s", server.Address())
	say("login:   source %s", *login)
	say("ready after %.1f s; Ctrl-C ends it", time.Since(began).Seconds())
	select {
	case <-ctx.Done():
		return nil
	case <-server.Ended():
		return fmt.Errorf("the server has ended by itself: %s", server.Quote())
	}
}

// writeLogin writes the file, for the eyes of its user alone. One that is there belongs to
// a server that runs, or to one that was killed: only a person knows.
func writeLogin(path string, server *mariadb.Server) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the login: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s belongs to another server: end that one, or choose another file by --login. If none runs, remove the file", path)
	}
	if err != nil {
		return fmt.Errorf("write the login: %w", err)
	}
	_, err = fmt.Fprintf(file, "export MYSQL_HOST=%s MYSQL_PORT=%d MYSQL_ROOT_PASSWORD=%s\n", server.Host, server.Port, server.Password)
	return errors.Join(err, file.Close())
}

package mariadb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/controlplane/process"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// startLimit is far beyond what a start takes, for machines that are busy.
	startLimit = harness.WaitTimeout
	// stopGrace is how long the server may take to close its files.
	stopGrace = 30 * time.Second
	interval  = 50 * time.Millisecond
)

// Options says where a server comes from and where its data are. The zero value is a
// server for one test.
type Options struct {
	// Bin is the directory of the programs. Empty: .dev/mariadb/bin in the working
	// directory or the nearest directory above it that has one.
	Bin string
	// Dir keeps the server's data, its certificates and its log. It is made, with mode
	// 0700, and must not be there. Empty: a temporary directory that Stop removes.
	Dir string
	// TLS lets the server have a certificate, which Server.CA has signed. It still
	// accepts connections without TLS.
	TLS bool
	// Args are further arguments of mariadbd.
	Args []string
}

// Server is a MariaDB server. Its account is root@127.0.0.1.
type Server struct {
	Host string
	Port int
	// Password is root's.
	Password string
	// Dir holds the data in data, and the log in log.
	Dir string
	// CA is the certificate, in PEM, of who signed the server's. Nil without Options.TLS.
	CA []byte

	programs programs
	user     *syscall.Credential
	args     []string
	running  *process.Group
	child    *process.Child
	remove   bool
}

// Start makes a new database and returns when its server answers. The context limits
// the start only. When Start fails, nothing that it started or made is left.
func Start(ctx context.Context, o Options) (_ *Server, err error) {
	found, err := findPrograms(o.Bin)
	if err != nil {
		return nil, err
	}
	s := &Server{Host: "127.0.0.1", Password: rand.Text(), Dir: o.Dir, programs: found, args: o.Args}
	address, err := harness.FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	s.Port, _ = strconv.Atoi(port)
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.remove = true
			err = errors.Join(fmt.Errorf("start MariaDB: %w", err), s.Stop())
		}
	}()
	if o.TLS {
		if err := s.certify(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("it took longer than %s", startLimit))
	defer cancel()
	if err := s.bootstrap(ctx); err != nil {
		return nil, err
	}
	return s, s.serve(ctx)
}

// Address is "host:port".
func (s *Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// PID is the server's process.
func (s *Server) PID() int { return s.child.PID() }

// Ended is closed when the server has ended, in order or not.
func (s *Server) Ended() <-chan struct{} { return s.child.Done() }

// Quote is the end of the server's log.
func (s *Server) Quote() string { return s.child.Quote() }

// Stop ends the server in order, and removes its data unless Options.Dir named their
// place. It may be called more than once.
func (s *Server) Stop() error {
	err := s.Halt()
	if s.remove {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// Kill ends the server as a loss of power does. Restart starts it again.
func (s *Server) Kill() error {
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill MariaDB: %w", err)
	}
	return s.Halt()
}

// Halt ends the server in order and keeps its data. Restart starts it again.
func (s *Server) Halt() error {
	if s.running == nil {
		return nil
	}
	return s.running.Stop(stopGrace)
}

// Restart starts the server again, on its port with its data, after it has ended it in
// order where it still runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Halt(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("it took longer than %s", startLimit))
	defer cancel()
	return s.serve(ctx)
}

// serve starts the server and waits until it answers.
func (s *Server) serve(ctx context.Context) (err error) {
	args := append(s.programs.arguments(s.file("data")),
		"--bind-address="+s.Host, "--port="+strconv.Itoa(s.Port), "--socket="+s.file("socket"), "--pid-file="+s.file("pid"),
		"--skip-name-resolve", "--character-set-server=utf8mb4")
	if s.CA != nil {
		args = append(args, "--ssl-ca="+s.file("ca.crt"), "--ssl-cert="+s.file("tls.crt"), "--ssl-key="+s.file("tls.key"))
	}
	if s.child, err = s.start(append(args, s.args...), ""); err != nil {
		return err
	}
	for {
		_, err := s.Query(ctx, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-s.child.Done():
			return fmt.Errorf("mariadbd ended with exit code %d; %s", s.child.ExitCode(), s.child.Quote())
		case <-ctx.Done():
			return fmt.Errorf("mariadbd does not answer: %w; %s", errors.Join(context.Cause(ctx), err), s.child.Quote())
		case <-time.After(interval):
		}
	}
}

// start starts mariadbd, with the file for its input where one is named.
func (s *Server) start(args []string, input string) (*process.Child, error) {
	s.running = process.NewGroup()
	return s.running.Start(process.Command{
		Path: s.programs.server, Args: args, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: s.Dir, Input: input, Log: filepath.Join(s.Dir, "log"), Credential: s.user,
	})
}

func (s *Server) file(name string) string { return filepath.Join(s.Dir, name) }

package controlplane

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/ensign-operator/ensign/test/controlplane/port"
)

// What a data directory holds.
const (
	logDir         = "logs"
	etcdSocket     = "etcd.sock"
	peerSocket     = "peer.sock"
	lockFile       = "lock"
	certFile       = "apiserver.crt"
	keyFile        = "apiserver.key"
	accountKeyFile = "service-accounts.key"
	tokenFile      = "tokens.csv"
	auditFile      = "audit.json"
	kubeconfigFile = "kubeconfig"
)

// auditPolicy names every request once it has been answered.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`

// state is what a cluster owns beside its processes.
type state struct {
	dir        string
	keep       bool // The directory outlives the cluster.
	lock       *os.File
	port       *port.Reservation
	kubeconfig *kubeconfig
	token      string
	ca         []byte
	audit      string // The audit log's absolute path, if there is to be one.
}

// openState makes or reopens the data directory, reserves a port and writes the
// kubeconfig. Keys are made once per directory, because tokens of service
// accounts that are kept in etcd are signed with one; the administrator's token
// is new each time.
func openState(o Options) (_ *state, err error) {
	s := &state{keep: o.DataDir != "", token: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.openDir(o.DataDir); err != nil {
		return nil, err
	}
	if o.AuditLog != "" {
		if s.audit, err = filepath.Abs(o.AuditLog); err != nil {
			return nil, fmt.Errorf("find the audit log: %w", err)
		}
	}
	if err := s.writeKeys(); err != nil {
		return nil, err
	}
	if s.port, err = port.Reserve(); err != nil {
		return nil, err
	}
	path := o.Kubeconfig
	if path == "" {
		path = s.file(kubeconfigFile)
	}
	if s.kubeconfig, err = claimKubeconfig(path); err != nil {
		return nil, err
	}
	return s, s.kubeconfig.write(s.url(), s.ca, s.token)
}

func (s *state) openDir(named string) (err error) {
	if s.keep {
		s.dir, err = filepath.Abs(named)
	} else {
		s.dir, err = os.MkdirTemp("", "ensign-controlplane-")
	}
	if err != nil {
		return fmt.Errorf("choose the data directory: %w", err)
	}
	if err := os.MkdirAll(s.file(logDir), 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	s.lock, err = openLocked(s.file(lockFile))
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%w: %q", ErrDataDirInUse, s.dir)
	}
	if err != nil {
		return fmt.Errorf("claim the data directory: %w", err)
	}
	return s.removeSockets()
}

// removeSockets clears away what servers left that did not end in order.
func (s *state) removeSockets() error {
	for _, name := range []string{etcdSocket, peerSocket} {
		if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a left socket: %w", err)
		}
	}
	return nil
}

// writeKeys writes the files that the servers are given by name.
func (s *state) writeKeys() error {
	if _, err := os.Stat(s.file(accountKeyFile)); errors.Is(err, os.ErrNotExist) {
		if err := s.makeKeys(); err != nil {
			return err
		}
	}
	var err error
	if s.ca, err = os.ReadFile(s.file(certFile)); err != nil {
		return fmt.Errorf("read the API server's certificate: %w", err)
	}
	return errors.Join(s.write(tokenFile, []byte(s.token+",admin,admin,system:masters\n")), s.write(auditFile, []byte(auditPolicy)))
}

// makeKeys writes the service accounts' key last: its presence says that the
// others are there.
func (s *state) makeKeys() error {
	crt, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return fmt.Errorf("make the API server's certificate: %w", err)
	}
	accountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("make the key of the service accounts: %w", err)
	}
	if err := errors.Join(s.write(certFile, crt), s.write(keyFile, key)); err != nil {
		return err
	}
	return s.write(accountKeyFile, accountKey)
}

func (s *state) file(name string) string { return filepath.Join(s.dir, name) }

func (s *state) write(name string, content []byte) error {
	if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
		return fmt.Errorf("write %s of the data directory: %w", name, err)
	}
	return nil
}

func (s *state) url() string { return fmt.Sprintf("https://127.0.0.1:%d", s.port.Number) }

func (s *state) restConfig() *rest.Config {
	return &rest.Config{
		Host:            s.url(),
		BearerToken:     s.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
		QPS:             1000,
		Burst:           2000,
	}
}

// close frees and removes whatever has been made so far.
func (s *state) close() error {
	var errs []error
	if s.kubeconfig != nil {
		errs = append(errs, s.kubeconfig.remove())
	}
	if s.port != nil {
		errs = append(errs, s.port.Free())
	}
	if s.dir != "" && !s.keep {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

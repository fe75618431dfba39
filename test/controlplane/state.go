package controlplane

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/ensign-operator/ensign/test/harness"
)

// What a data directory holds.
const (
	logDir     = "logs"
	etcdSocket = "etcd.sock"
	peerSocket = "peer.sock"
	certFile   = "localhost_127.0.0.1_.crt" // client-go names it, and the key.
	keyFile    = "localhost_127.0.0.1_.key"
	tokenFile  = "tokens.csv"
	auditFile  = "audit.json"
)

const (
	// header marks the kubeconfigs that may be overwritten: nobody's own is lost.
	header = "# Written by Ensign's embedded control plane, which removes it when it ends.\n"
	// auditPolicy names every request once it has been answered.
	auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}`
)

// ErrKubeconfigInUse is wrapped by Start when the kubeconfig that it was given belongs to
// a running cluster.
var ErrKubeconfigInUse = errors.New("kubeconfig in use by a running control plane")

// open makes or reopens the data directory, chooses a port and writes the
// kubeconfig. The key is made once per directory, because tokens of service
// accounts that are kept in etcd are signed with it; the administrator's token
// is new each time.
func (c *Cluster) open(o Options) error {
	if err := c.openDir(o.DataDir); err != nil {
		return err
	}
	address, err := harness.FreeAddress()
	if err != nil {
		return fmt.Errorf("choose the API server's port: %w", err)
	}
	crt, _, err := cert.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil, c.DataDir)
	if err != nil {
		return fmt.Errorf("make the API server's certificate: %w", err)
	}
	c.Config = &rest.Config{
		Host: "https://" + address, BearerToken: rand.Text(), TLSClientConfig: rest.TLSClientConfig{CAData: crt}, QPS: 1000, Burst: 2000,
	}
	err = errors.Join(
		os.WriteFile(c.file(tokenFile), []byte(c.Config.BearerToken+",admin,admin,system:masters\n"), 0o600),
		os.WriteFile(c.file(auditFile), []byte(auditPolicy), 0o600))
	if err != nil {
		return fmt.Errorf("fill the data directory: %w", err)
	}
	if c.Kubeconfig = c.file("kubeconfig"); o.Kubeconfig != "" {
		if c.Kubeconfig, err = filepath.Abs(o.Kubeconfig); err != nil {
			return fmt.Errorf("find kubeconfig: %w", err)
		}
	}
	return c.writeKubeconfig()
}

func (c *Cluster) file(name string) string { return filepath.Join(c.DataDir, name) }

// openDir takes the data directory, and removes the sockets that servers left in it
// that did not end in order.
func (c *Cluster) openDir(named string) (err error) {
	if named != "" {
		c.DataDir, err = filepath.Abs(named)
	} else if c.DataDir, err = os.MkdirTemp("", "ensign-controlplane-"); err == nil {
		c.undo = append(c.undo, func() error { return os.RemoveAll(c.DataDir) })
	}
	if err != nil {
		return fmt.Errorf("choose the data directory: %w", err)
	}
	if err := os.MkdirAll(c.file(logDir), 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if err := c.claim(c.file(etcdSocket), errors.New("data directory in use by a running control plane")); err != nil {
		return err
	}
	for _, name := range []string{etcdSocket, peerSocket} {
		if err := os.Remove(c.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove a left socket: %w", err)
		}
	}
	return nil
}

// writeKubeconfig refuses a file that belongs to a running cluster and one that no
// cluster of ours wrote.
func (c *Cluster) writeKubeconfig() error {
	if err := os.MkdirAll(filepath.Dir(c.Kubeconfig), 0o755); err != nil {
		return fmt.Errorf("make the directory of kubeconfig %q: %w", c.Kubeconfig, err)
	}
	if err := c.claim(c.Kubeconfig, ErrKubeconfigInUse); err != nil {
		return err
	}
	present, err := os.ReadFile(c.Kubeconfig)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if len(present) > 0 && !bytes.HasPrefix(present, []byte(header)) {
		return fmt.Errorf("kubeconfig %q was not written by an embedded control plane and is left alone: name another path", c.Kubeconfig)
	}
	const name = "ensign"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: c.Config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	c.undo = append(c.undo, func() error { return os.RemoveAll(c.Kubeconfig) }) // It may be gone.
	if err := os.WriteFile(c.Kubeconfig, append([]byte(header), content...), 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// claim takes a file from all other clusters of the machine, by a socket whose name
// is the file's, in the abstract name space: the kernel drops it when the process
// ends, however it ends. It fails with taken where another cluster has the file.
func (c *Cluster) claim(path string, taken error) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("claim a file: %w", err)
	}
	name := sha256.Sum256([]byte(filepath.Join(dir, filepath.Base(path)))) // The kernel takes a hundred bytes.
	socket, err := net.Listen("unix", fmt.Sprintf("@ensign-controlplane-%x", name))
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("%w: %q", taken, path)
	}
	if err != nil {
		return fmt.Errorf("claim a file: %w", err)
	}
	c.undo = append(c.undo, socket.Close)
	return nil
}

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Start wraps these when what it was given belongs to a running cluster.
var (
	ErrKubeconfigInUse = errors.New("kubeconfig in use by a running control plane")
	ErrDataDirInUse    = errors.New("data directory in use by a running control plane")
)

// errLocked is openLocked's: somebody else has the file.
var errLocked = errors.New("locked by another process")

// header marks the kubeconfigs that may be overwritten: nobody's own is lost.
const header = "# Written by Ensign's embedded control plane, which removes it when it ends.\n"

// kubeconfig is the administrator's file, locked while its cluster lives.
type kubeconfig struct {
	path string
	file *os.File
}

// claimKubeconfig makes the file ours. It refuses a file that belongs to a
// running cluster and one that no cluster of ours wrote.
func claimKubeconfig(path string) (_ *kubeconfig, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of kubeconfig %q: %w", path, err)
	}
	file, err := openLocked(path)
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%w: %q", ErrKubeconfigInUse, path)
	}
	if err != nil {
		return nil, fmt.Errorf("claim kubeconfig: %w", err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if len(content) > 0 && !bytes.HasPrefix(content, []byte(header)) {
		return nil, fmt.Errorf("kubeconfig %q was not written by an embedded control plane and is left alone: name another path", path)
	}
	return &kubeconfig{path: path, file: file}, nil
}

// write fills the file for one cluster and one user. It writes in place, because
// the lock is the file's and not the path's.
func (k *kubeconfig) write(server string, ca []byte, token string) error {
	const name = "ensign"
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name, Namespace: "default"}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := errors.Join(k.file.Chmod(0o600), k.file.Truncate(0)); err != nil {
		return fmt.Errorf("empty kubeconfig %q: %w", k.path, err)
	}
	if _, err := k.file.WriteAt(append([]byte(header), content...), 0); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// remove deletes the file before the lock goes.
func (k *kubeconfig) remove() error {
	err := os.Remove(k.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, k.file.Close())
}

// openLocked opens or creates the file and locks it, or fails with errLocked. The
// kernel drops the lock when the process ends, however it ends.
func openLocked(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open for locking: %w", err)
		}
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isAt(file, path) {
			return file, nil
		}
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		if err != nil {
			return nil, fmt.Errorf("lock %q: %w", path, err)
		}
		// Its owner removed the file between our opening and locking it.
	}
}

func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	present, err := os.Stat(path)
	return err == nil && os.SameFile(opened, present)
}

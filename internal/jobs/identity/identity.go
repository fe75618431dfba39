package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	seedBytes = 32
	// seedKey is the key of the seed in the Secret.
	seedKey = "seed"
	// certificateLifetime is longer than any manager runs. Agents do not check it.
	certificateLifetime = 10 * 365 * 24 * time.Hour
)

// Identity is the shared identity of the managers of one operator.
type Identity struct {
	certificate tls.Certificate
	public      ed25519.PublicKey
	sessionKey  []byte
}

// New returns the identity of a seed of 32 random bytes.
func New(seed []byte) (*Identity, error) {
	if len(seed) != seedBytes {
		return nil, fmt.Errorf("the seed has %d bytes, and not %d", len(seed), seedBytes)
	}
	serverSeed, err := hkdf.Key(sha256.New, seed, nil, "ensign.io server", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the key of servers: %w", err)
	}
	sessionKey, err := hkdf.Key(sha256.New, seed, nil, "ensign.io session", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of sessions: %w", err)
	}
	key := ed25519.NewKeyFromSeed(serverSeed)
	public, _ := key.Public().(ed25519.PublicKey)
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "ensign manager"},
		NotBefore:    now.Add(-time.Hour), // Clocks may be set back.
		NotAfter:     now.Add(certificateLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate for agents: %w", err)
	}
	return &Identity{tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, public, sessionKey}, nil
}

// Load returns the identity of the Secret. The first manager makes the Secret, with these labels.
func Load(ctx context.Context, c client.Client, name types.NamespacedName, labels map[string]string) (*Identity, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		seed := make([]byte, seedBytes)
		_, _ = rand.Read(seed) // It never fails.
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels}
		secret.Data = map[string][]byte{seedKey: seed}
		if err = c.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
			err = c.Get(ctx, name, secret) // Another manager was faster.
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read or make the Secret that managers share: %w", err)
	}
	i, err := New(secret.Data[seedKey])
	if err != nil {
		return nil, fmt.Errorf("the Secret %s, which managers share, can't be used; delete it while no Job runs, and restart the manager: %w", name, err)
	}
	return i, nil
}

// PublicKey returns the key by which agents know the managers.
func (i *Identity) PublicKey() string { return base64.StdEncoding.EncodeToString(i.public) }

// ServerTLS returns the configuration of the managers' servers.
func (i *Identity) ServerTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
}

// ErrOtherServer is returned for a server that is not a manager with the public key.
var ErrOtherServer = errors.New("the server is not a manager of this operator: its key differs")

// ClientTLS returns the configuration of an agent that accepts the managers with this key alone,
// whatever their names and the time.
func ClientTLS(publicKey string) (*tls.Config, error) {
	key, err := base64.StdEncoding.DecodeString(publicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("invalid public key of managers: %q", publicKey)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{"http/1.1"},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection accepts only the pinned key.
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !ed25519.PublicKey(key).Equal(state.PeerCertificates[0].PublicKey) {
				return ErrOtherServer
			}
			return nil
		},
	}, nil
}

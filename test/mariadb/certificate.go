package mariadb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certify makes an authority, whose key is thrown away, and the server's certificate.
func (s *Server) certify() error {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: s.Host}, NotAfter: authority.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(s.Host)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	ca, caErr := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	crt, crtErr := x509.CreateCertificate(rand.Reader, own, authority, &key.PublicKey, signer)
	encoded, keyErr := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(caErr, crtErr, keyErr); err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca})
	for name, content := range map[string][]byte{
		"ca.crt": s.CA, "tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: crt}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	} {
		if err := os.WriteFile(s.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write a certificate: %w", err)
		}
		if s.user != nil {
			if err := os.Chown(s.file(name), int(s.user.Uid), int(s.user.Gid)); err != nil {
				return fmt.Errorf("write a certificate: %w", err)
			}
		}
	}
	return nil
}

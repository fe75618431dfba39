package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const (
	loopback = "127.0.0.1"
	// certificateAge outlives every manager: the certificate is made anew at
	// each start and never leaves memory, so nothing would be won by less.
	certificateAge = 10 * 365 * 24 * time.Hour
)

type identity struct {
	certificate tls.Certificate
	ca          []byte
}

func newIdentity() (identity, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKeyWithOptions(certutil.SelfSignedCertKeyOptions{
		Host:         loopback,
		AlternateIPs: []net.IP{net.ParseIP(loopback)},
		MaxAge:       certificateAge,
	})
	if err != nil {
		return identity{}, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return identity{}, err
	}
	// The chain's PEM holds the certificate and its own authority.
	return identity{certificate: pair, ca: certificate}, nil
}

func (i identity) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(i.ca)
	return pool
}

func (i identity) wrap(listener net.Listener) net.Listener {
	return tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{i.certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})
}

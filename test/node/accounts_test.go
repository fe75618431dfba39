//go:build node

package node

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// keepsDatabasesAndAccounts looks at those of config/samples on the server in its pod.
func keepsDatabasesAndAccounts(ctx context.Context) {
	const database, user = "mysqldatabase-sample", "mysqluser-sample"
	for kind, name := range map[string]string{"MySQLDatabase": database, "MySQLUser": user} {
		Eventually(ctx, func(g Gomega) { isSuccessful(g, custom(ctx, kind, name)) }).Should(Succeed())
	}
	asRoot(ctx, "CREATE TABLE shop.orders (word TEXT)")
	password := secret(ctx, "mysql-shop", "password")
	as := func(password, statement string) func() (string, error) {
		return func() (string, error) { return sql(ctx, "shop", password, statement) }
	}
	Expect(as(password, "INSERT INTO shop.orders VALUES ('tea'); SELECT word FROM shop.orders")()).To(Equal("tea\n"))

	By("only with its granted rights")
	for _, statement := range []string{"DROP TABLE shop.orders", "SELECT word FROM kept.kept"} {
		_, err := as(password, statement)()
		Expect(err).To(MatchError(ContainSubstring("denied")), statement)
	}

	By("nothing to change when it runs again")
	for kind, name := range map[string]string{"MySQLDatabase": database, "MySQLUser": user} {
		Expect(runAgainFor(ctx, kind, name)).To(HaveKeyWithValue("changed", BeNumerically("==", 0)), kind)
	}

	By("a new password")
	kubectl(ctx, "patch", "secret", "mysql-shop", "--type=merge", "--patch", `{"stringData":{"password":"another password"}}`)
	Eventually(ctx, as("another password", "SELECT word FROM shop.orders")).Should(Equal("tea\n"))
	_, err := as(password, "SELECT 1")()
	Expect(err).To(MatchError(ContainSubstring("Access denied")))

	By("deletion, by which the account goes and the database stays")
	kubectl(ctx, "delete", "mysqluser/"+user, "mysqldatabase/"+database, "--timeout=1m")
	Expect(asRoot(ctx, "SELECT COUNT(*) FROM mysql.user WHERE user = 'shop'; SELECT word FROM shop.orders")).To(Equal("0\ntea\n"))
}

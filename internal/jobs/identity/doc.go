// Package identity has the secret seed that the managers of one operator share, so that the agent of a
// running Job can go on with any of them. A Secret keeps the seed. Two things are derived from it.
//
//   - The key pair of the managers' servers. An agent gets the public key in its environment and
//     accepts no other server. There is no certificate authority, and nothing expires: each manager
//     makes a new certificate when it starts, and agents look at the key in it alone.
//   - The key of session tokens. A token names the Job, the pod and the run for which a manager made
//     it. Any manager can check it.
//
// A reader of the Secret can act as a manager to agents, and as any agent to managers.
package identity

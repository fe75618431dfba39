DOCUMENTATION = """
name: vaulted
short_description: has an option that a resource could set
options:
  address:
    description: where
    type: str
    vars:
      - name: vault_address
"""

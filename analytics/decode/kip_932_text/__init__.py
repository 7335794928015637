"""`__share_group_state` as a late text of KIP-932 has it, beside the reading of releases."""

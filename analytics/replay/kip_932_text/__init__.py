"""What a share coordinator would replay by a late text of KIP-932."""

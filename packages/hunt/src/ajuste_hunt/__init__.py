"""The hunt for rare failures and stalls: chance in a guest is searched for the moments that show them."""

<title>{{ $name }}</title>
<p>In your cart: {{ implode(', ', $cart) ?: 'nothing' }}</p>

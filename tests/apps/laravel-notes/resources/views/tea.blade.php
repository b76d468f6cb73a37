<!doctype html>
<title>No tea</title>
<p>{{ $left }} leaves left in {{ config('app.name') }}.</p>

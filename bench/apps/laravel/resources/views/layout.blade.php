<!doctype html>
<html lang="{{ str_replace('_', '-', app()->getLocale()) }}">
<head>
    <meta charset="utf-8">
    <meta name="csrf-token" content="{{ csrf_token() }}">
    <title>@yield('title') · {{ config('app.name') }}</title>
</head>
<body>
    <nav><a href="{{ route('index') }}">{{ __('Home') }}</a></nav>
    <main>
        @yield('content')
    </main>
</body>
</html>

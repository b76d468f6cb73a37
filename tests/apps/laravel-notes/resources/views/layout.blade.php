<!doctype html>
<html lang="{{ str_replace('_', '-', app()->getLocale()) }}">
<head>
    <meta charset="utf-8">
    <meta name="csrf-token" content="{{ csrf_token() }}">
    <title>@yield('title') · {{ config('app.name') }}</title>
</head>
<body>
    <nav>
        <a href="{{ route('home') }}">{{ __('messages.home') }}</a>
        @auth
            <strong>{{ auth()->user()->name }}</strong>
            @include('form', ['action' => route('logout'), 'button' => 'Log out'])
        @else
            <a href="{{ route('login') }}">Log in</a>
        @endauth
    </nav>
    @if (session('status'))
        <p class="flash">{{ session('status') }}</p>
    @endif
    @foreach ($errors->all() as $error)
        <p class="error">{{ $error }}</p>
    @endforeach
    <main>
        @yield('content')
    </main>
    @stack('foot')
</body>
</html>

<?php

declare(strict_types=1);

namespace App\Http\Controllers;

use App\Http\Requests\RegistrationRequest;
use App\Models\User;
use Illuminate\Contracts\View\View;
use Illuminate\Http\RedirectResponse;
use Illuminate\Http\Request;
use Illuminate\Routing\Controller;
use Illuminate\Support\Facades\Auth;
use Illuminate\Support\Facades\Hash;

final class AuthController extends Controller
{
    public function registration(): View
    {
        return view('auth.register');
    }

    public function register(RegistrationRequest $request): RedirectResponse
    {
        $user = User::create(['password' => Hash::make($request->input('password'))] + $request->validated());
        Auth::login($user);
        $request->session()->regenerate();

        return redirect()->route('notes')->with('status', __('messages.welcome', ['name' => $user->name]));
    }

    public function form(): View
    {
        return view('auth.login');
    }

    public function login(Request $request): RedirectResponse
    {
        $credentials = $request->validate(['email' => ['required', 'email'], 'password' => ['required']]);
        if (!Auth::attempt($credentials)) {
            return back()->withErrors(['email' => __('messages.failed')])->onlyInput('email');
        }
        $request->session()->regenerate();

        return redirect()
            ->intended(route('notes'))
            ->with('status', __('messages.welcome', ['name' => Auth::user()->name]));
    }

    public function logout(Request $request): RedirectResponse
    {
        Auth::logout();
        $request->session()->invalidate();
        $request->session()->regenerateToken();

        return redirect()->route('home')->with('status', __('messages.bye'));
    }
}
